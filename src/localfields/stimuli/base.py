"""What every stimulus is: samples, and the exact statistics they have."""

from __future__ import annotations

import abc
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .._memory import sample_memory
from .._prng import call_with_key, make_key
from .._spec import Count, Declaration, Nested, Number, Spec, required
from .._types import Lattice, Real
from ..errors import InputError, show
from ..fields import LATTICE as LATTICE
from ..fields import RING as RING
from ..lattice import Given, KernelField, check_kernel, matrix, normalize_kernel, product
from ..marginals import Marginal

if TYPE_CHECKING:
    from .gaussian import DenseGaussian, Gaussian

LARGEST_DRAW = 2**31  # numbers in one call: 8 GB; more is better drawn in pieces
LARGEST_TABLE = 50_000_000  # numbers in a list of patterns: 400 MB


class Stimulus(Spec):
    """A distribution on a lattice, with mean zero and unit variance unless it says otherwise.

    A new stimulus is one file: a subclass that declares its fields (the first is `shape`) and
    defines `draw`, `covariance` and `marginal`. Validation, JSON form and command-line options
    follow from the fields.
    """

    family: ClassVar[str] = "stimulus"
    most_atoms: ClassVar[int] = 200_000  # patterns that `atoms` lists

    shape = required(Lattice)

    @property
    def translation_invariant(self) -> bool:
        """Whether every shift has the same distribution (assumption S2)."""
        return True

    @property
    def sign_symmetric(self) -> bool:
        """Whether X and −X have the same distribution (assumption S3)."""
        return True

    @property
    def weakly_dependent(self) -> bool:
        """Whether distant sites are nearly independent (assumption S1)."""
        return True

    @property
    def elliptical(self) -> bool:
        """Whether the density depends on x only through xᵀΣ⁻¹x; then no field localizes."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether the distribution is a multivariate normal."""
        return False

    @property
    def gaussian_copula(self) -> bool:
        """Whether X_i = T(Z_i): Z a stationary Gaussian colored by the fields `kernel` and `xi`.

        T is the map of `marginal()` from a normal. The fused kernel serves such stimuli.
        """
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
        """Draw `num` samples, (num, size), with JAX operations; numeric fields may be traced."""

    @abc.abstractmethod
    def covariance(self) -> np.ndarray:
        """Exact Cov(X_0, X_d) at every displacement d, of the lattice's shape, in float64.

        A stimulus that is not translation invariant returns the whole matrix, (*shape, *shape).
        """

    @abc.abstractmethod
    def marginal(self) -> Marginal | None:
        """Exact distribution of one coordinate."""

    def latent_correlation(self) -> np.ndarray | None:
        """Correlation row of the Gaussian Z if X_i = T(Z_i), with T as `marginal` says.

        None if X is not such a copula.
        """
        return None

    def covariance_matrix(self) -> np.ndarray:
        """The whole covariance matrix Σ, (size, size), in float64."""
        values = np.asarray(self.covariance(), np.float64)
        if values.shape == self.shape:
            return matrix(values)
        return values.reshape(self.size, self.size)

    def covariance_product(self, w: np.ndarray) -> np.ndarray:
        """Σw for fields w, (field, size), without building Σ where it is one row."""
        values = np.asarray(self.covariance(), np.float64)
        if values.shape == self.shape:
            return product(values, w.reshape(-1, *self.shape)).reshape(w.shape)
        return w @ values.reshape(self.size, -1)

    @property
    def num_atoms(self) -> int | None:
        """Number of patterns that a sample can be, each counted as often as `atoms` lists it.

        None where that is not a finite list.
        """
        return None

    @property
    def has_atoms(self) -> bool:
        """Whether `atoms` can list the patterns: there are finitely many, and not too many."""
        num = self.num_atoms
        return num is not None and num <= self.most_atoms and num * self.size <= LARGEST_TABLE

    def atoms(self) -> tuple[np.ndarray, np.ndarray]:
        """Every pattern that a sample can be, with its probability.

        Returns:
            Patterns, (num_atoms, size) in float64, and probabilities, (num_atoms,).

        Raises:
            InputError: If `has_atoms` is False.

        Example:
            >>> import localfields as lf
            >>> lf.stimuli.BlockPulse(4, length=2, coding="zero-one").atoms()
            (array([[1., 1., 0., 0.],
                   [0., 0., 1., 1.]]), array([0.5, 0.5]))
        """
        self.require_one("to list the patterns of")
        if self.num_atoms is None:
            raise InputError(f"{show(self)} does not have finitely many patterns.")
        if not self.has_atoms:
            raise InputError(
                f"{self.num_atoms} patterns on {self.size} sites are too many to list: at most "
                f"{self.most_atoms}, and {LARGEST_TABLE} numbers in all. Take a smaller lattice."
            )
        return self.list_atoms()

    def list_atoms(self) -> tuple[np.ndarray, np.ndarray]:
        """The list for `atoms`; a subclass with `num_atoms` defines it."""
        raise NotImplementedError

    def linear_slope(self) -> float | None:
        """m₁ = E|S|/(2s) of a projection S with deviation s, if it is the same in all directions.

        Then the gated mean is linear, m₁ Σw/√(wᵀΣw). None unless the distribution is elliptical and
        sign symmetric.
        """
        if self.gaussian:
            return 1 / math.sqrt(2 * math.pi) if self.sign_symmetric else None
        marginal = self.marginal() if self.elliptical and self.sign_symmetric else None
        return None if marginal is None else marginal.mean_abs / (2 * marginal.sd)

    def has_gated_mean(self, w: np.ndarray) -> bool:
        """Whether `gated_mean` is known in this direction; cheap."""
        linear = self.elliptical and self.sign_symmetric
        return self.has_atoms or (linear and (self.gaussian or self.marginal() is not None))

    def gated_mean(self, w: np.ndarray) -> np.ndarray | None:
        """E[1(⟨w, X⟩ > 0) X], to rounding: what a gate lets through. A tie counts one half.

        Args:
            w: A direction, (size,); its length does not matter.

        Returns:
            (size,), or None where it is not known (then it has to be estimated from samples).

        Example:
            >>> import numpy as np, localfields as lf
            >>> lf.stimuli.Ising(4, coupling=0.7).gated_mean(np.eye(4)[0]).round(4).tolist()
            [0.5, 0.364, 0.3223, 0.364]
        """
        w = np.asarray(w, np.float64)
        slope = self.linear_slope() if self.elliptical else None
        if slope is not None:
            image = self.covariance_matrix() @ w
            variance = float(w @ image)
            # A projection that does not vary is zero throughout: a tie, and half of 0 passes.
            if not self._varies(w, variance):
                return np.zeros(self.size)
            return slope * image / math.sqrt(variance)
        if self.has_atoms:
            x, p = self.atoms()
            return (p * np.heaviside(x @ w, 0.5)) @ x
        return None

    def projection_kurtosis(self, w: np.ndarray) -> np.ndarray | None:
        """Excess kurtosis of ⟨w, X⟩ for fields w, (…, size), where no samples are needed for it.

        Returns:
            (…,), with nan where ⟨w, X⟩ does not vary; None where it is not known.

        Example:
            >>> import numpy as np, localfields as lf
            >>> lf.stimuli.Ising(4, coupling=0.7).projection_kurtosis(np.eye(4)[0]).round(9)
            np.float64(-2.0)
        """
        marginal = None if self.gaussian else self.marginal()
        if self.gaussian:
            kurtosis = 0.0
        elif self.elliptical and marginal is not None:
            # Every projection is distributed like a coordinate, up to scale.
            kurtosis = float(marginal.excess_kurtosis)
        elif marginal is not None and math.isinf(marginal.kurtosis):
            kurtosis = math.inf  # of a sum, too: one heavy tail is enough
        else:
            return None
        w = np.asarray(w, np.float64)
        flat = w.reshape(-1, self.size)
        variance = np.einsum("fi,fi->f", flat, self.covariance_product(flat))
        return np.where(self._varies(flat, variance), kurtosis, np.nan).reshape(w.shape[:-1])

    def _varies(self, w: np.ndarray, variance: Any) -> Any:
        """Whether the variance of ⟨w, X⟩ is more than rounding of the sum that it is."""
        largest = np.abs(w).sum(axis=-1) ** 2 * np.abs(self.covariance()).max()
        return variance > 64 * np.finfo(np.float64).eps * largest

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
        from ._check import check_once

        num = Count(high=LARGEST_DRAW).check("num", num)
        if num * self.size > LARGEST_DRAW:
            raise InputError(
                f"{num} samples of {self.size} sites are more numbers than one key can draw "
                f"({LARGEST_DRAW}). Draw in pieces, with one key each from `jax.random.split`."
            )
        self.require_one("to sample from")
        sample_memory(num, self.size).check()
        check_once(self)
        return _compiled_draw(self, as_key(key), num)

    def gaussian_clone(self) -> Gaussian | DenseGaussian:
        """The Gaussian with the same mean and covariance: second-order statistics alone.

        Example:
            >>> import numpy as np, localfields as lf
            >>> ising = lf.stimuli.Ising(12, coupling=0.7)
            >>> bool(np.allclose(ising.gaussian_clone().covariance(), ising.covariance()))
            True
        """
        from .gaussian import DenseGaussian, Gaussian

        covariance = self.covariance()
        if covariance.shape != self.shape:  # a matrix: not translation invariant
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
def _compiled_draw(stimulus: Stimulus, key: Any, num: int) -> Any:
    return draw(stimulus, key, num)


def draw(stimulus: Stimulus, key: Any, num: int) -> Any:
    """`stimulus.draw`, in which every function of `jax.random` works."""
    return call_with_key(lambda key: stimulus.draw(key, num), key)


def as_key(key: Any) -> Any:
    """Accept a JAX key, or a whole number as its seed."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < 2**63:
        return make_key(int(key))
    if isinstance(key, jax.Array) and (
        (jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ())
        or (key.shape == (2,) and key.dtype == jnp.uint32)  # of `jax.random.PRNGKey`
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
    help="correlation against distance: squared-exponential, periodized, given:row=1,…; "
    "in Python a function of d/ξ",
    symbol="C",
)


class Colored(Stimulus):
    """A stimulus made from white noise that a kernel colors."""

    xi = required(Real)
    kernel = required(KernelField)

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a kernel given as a function."""
        return normalize_kernel(given)

    def __check_init__(self):
        """Check the kernel against the lattice, and warn where it had to be made positive."""
        check_kernel(self.kernel, self.shape, self.xi)
