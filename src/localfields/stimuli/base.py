"""What every stimulus is: samples, and the exact statistics they have."""

from __future__ import annotations

import abc
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .._prng import make_key
from .._spec import Count, Declaration, Nested, Number, Spec, required
from .._types import Lattice, Real
from ..errors import InputError, show
from ..fields import LATTICE as LATTICE
from ..fields import RING as RING
from ..lattice import Given, KernelField, check_kernel, normalize_kernel
from ..marginals import Marginal

if TYPE_CHECKING:
    from .gaussian import DenseGaussian, Gaussian

LARGEST_DRAW = 2**31  # numbers in one call: 8 GB; more is better drawn in pieces


class Stimulus(Spec):
    """A law on a lattice, with mean zero and unit variance unless it says otherwise.

    A new stimulus is one file: a subclass that declares its fields (the first is `shape`) and defines `draw`,
    `covariance` and `marginal`. Validation, JSON form and command-line options follow from the fields.
    """

    family: ClassVar[str] = "stimulus"

    shape = required(Lattice)

    @property
    def translation_invariant(self) -> bool:
        """Whether every shift has the same law (assumption S2)."""
        return True

    @property
    def sign_symmetric(self) -> bool:
        """Whether X and −X have the same law (assumption S3)."""
        return True

    @property
    def weakly_dependent(self) -> bool:
        """Whether distant sites are nearly independent (assumption S1)."""
        return True

    @property
    def elliptical(self) -> bool:
        """Whether the law depends on x only through xᵀΣ⁻¹x; then no marginal can make a field localize."""
        return False

    @property
    def size(self) -> int:
        """Number of sites, N."""
        return math.prod(self.shape)

    def mean(self) -> float:
        """Exact mean of every coordinate."""
        return 0.0

    @abc.abstractmethod
    def draw(self, key: Any, num: int) -> jax.Array:
        """Draw `num` samples, (num, size), in code that JAX can compile; numeric fields may be traced."""

    @abc.abstractmethod
    def covariance(self) -> np.ndarray:
        """Exact Cov(X_0, X_d) at every displacement d, of the lattice's shape, in float64.

        A stimulus that is not translation invariant returns the whole matrix, (*shape, *shape).
        """

    @abc.abstractmethod
    def marginal(self) -> Marginal | None:
        """Exact law of one coordinate."""

    def sample(self, key: Any, num: int) -> jax.Array:
        """Draw independent samples.

        Args:
            key: A JAX random key, or a whole number to make one from.
            num: How many samples.

        Returns:
            (num, size) with the sites in C order, float32 unless x64 is on.

        Example:
            >>> import localfields as lf
            >>> lf.stimuli.NLGP((40,), xi=3, gain=100).sample(0, 1000).shape
            (1000, 40)
        """
        num = Count(high=LARGEST_DRAW).check("num", num)
        if num * self.size > LARGEST_DRAW:
            raise InputError(
                f"{num} samples of {self.size} sites are more numbers than one key can draw ({LARGEST_DRAW}). "
                "Draw in pieces, with one key each from `jax.random.split`."
            )
        self.require_one("to sample from")
        return _compiled_draw(self, as_key(key), num)

    def gaussian_clone(self) -> Gaussian | DenseGaussian:
        """The Gaussian with the same mean and covariance: what is left when only second-order structure matters.

        Example:
            >>> import numpy as np, localfields as lf
            >>> ising = lf.stimuli.Ising(12, coupling=0.7)
            >>> bool(np.allclose(ising.gaussian_clone().covariance(), ising.covariance()))
            True
        """
        from .gaussian import DenseGaussian, Gaussian

        covariance = self.covariance()
        if covariance.shape != self.shape:
            return DenseGaussian(
                self.shape, covariance.reshape(self.size, self.size), offset=self.mean()
            )
        variance = float(covariance.flat[0])
        return Gaussian(
            self.shape,
            offset=self.mean(),
            scale=math.sqrt(variance),
            kernel=Given(covariance / variance),
        )


@functools.partial(jax.jit, static_argnums=2)
def _compiled_draw(stimulus: Stimulus, key: Any, num: int) -> jax.Array:
    return stimulus.draw(key, num)


def as_key(key: Any) -> Any:
    """Accept a JAX key, or a whole number as its seed."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < 2**63:
        return make_key(int(key))
    if isinstance(key, jax.Array) and (
        (jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ())
        or (key.shape == (2,) and key.dtype == jnp.uint32)
    ):
        return key
    raise InputError(
        f"`key` must be one JAX random key or a whole number, such as `jax.random.key(0)` or 0, "
        f"got {show(key)}."
    )


LENGTHSCALE = Declaration(
    Number(low=0, hint="For independent sites use a small lengthscale, such as 0.1."),
    help="lengthscale of the latent correlation, in sites",
    symbol="ξ",
)
KERNEL = Declaration(
    Nested("kernel"),
    help="correlation against distance: squared-exponential, periodized, given:row=1,…; in Python a function of d/ξ",
    symbol="C",
)


class Colored(Stimulus):
    """A stimulus made of white noise that a kernel colors; what follows the coloring is the subclass's."""

    xi = required(Real)
    kernel = required(KernelField)

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a kernel given as a function."""
        return normalize_kernel(given)

    def __check_init__(self):
        """Check the kernel against the lattice, and warn where it had to be made positive."""
        check_kernel(self.kernel, self.shape, self.xi)
