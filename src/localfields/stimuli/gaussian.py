"""Gaussian stimuli, and every site-by-site function of one: NLGP, Kur, any copula."""

from __future__ import annotations

import abc
import math
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from .._spec import Nested, Row, declare, derived, number, required
from .._types import Array, Lattice, Real, working_dtype
from ..errors import InputError, show
from ..lattice import (
    Given,
    KernelField,
    SquaredExponential,
    check_row,
    colored,
    normalize_kernel,
    shifted,
)
from ..marginals import Algebraic, ErfNormal, Laplace, Marginal, Normal, SphereProjection
from ..marginals.base import MarginalField, latent_row, normal_rule
from ..marginals.numeric import as_marginal
from .base import KERNEL, LATTICE, LENGTHSCALE, Colored, Stimulus


class GaussianCopula(Colored):
    """X_i = T(Z_i): a stationary Gaussian Z and an increasing map T that sets the marginal."""

    @property
    def gaussian_copula(self) -> bool:
        """By definition."""
        return True

    @abc.abstractmethod
    def marginal(self) -> Marginal:
        """Exact distribution of one coordinate; it may be made from traced fields."""

    def draw(self, key: Any, num: int) -> jax.Array:
        """Color white noise, then map each site."""
        white = jax.random.normal(key, (num, *self.shape), working_dtype())
        z = colored(white, self.kernel, self.shape, self.xi)
        return self.marginal().from_normal(z).reshape(num, self.size)

    def latent_correlation(self) -> np.ndarray:
        """Correlation of the latent Gaussian at every displacement."""
        return self.kernel.correlation(self.shape, self.xi)

    def covariance(self) -> np.ndarray:
        """From the latent correlation and the marginal: a closed form, or a Hermite series."""
        self.require_one("to take the covariance of")
        marginal = self.marginal()
        return marginal.variance * marginal.correlation(self.latent_correlation())

    def covariance_error(self) -> float:
        """Bound on the truncation error of `covariance` (0 for closed forms)."""
        marginal = self.marginal()
        return marginal.variance * marginal.correlation_error(self.latent_correlation())

    def site_gated_mean(self) -> np.ndarray:
        """E[1(X_0 > 0) X_d] at every displacement d: ½E[T(Z) erf(rZ/√(2(1 − r²)))].

        Only for a symmetric marginal; of the lattice's shape.

        Example:
            >>> import localfields as lf
            >>> lf.stimuli.NLGP((40,), xi=3, gain=3).site_gated_mean()[:2].round(4).tolist()
            [0.4789, 0.378]
        """
        r = np.asarray(self.latent_correlation(), np.float64)
        z, weights = normal_rule()
        # Factors, since 1 − r² loses digits near r = ±1; at ±1 itself the slope is as good as ∞.
        slope = r / np.sqrt(np.maximum(2 * (1 - r) * (1 + r), np.finfo(np.float64).tiny))
        weighted = weights * self.marginal().from_normal(z)
        return 0.5 * scipy.special.erf(slope[..., None] * z) @ weighted

    def has_gated_mean(self, w: np.ndarray) -> bool:
        """In the direction of a single site."""
        one_site = self.sign_symmetric and int(np.count_nonzero(w)) == 1
        return super().has_gated_mean(w) or one_site

    def gated_mean(self, w: np.ndarray) -> np.ndarray | None:
        """In the direction of a single site, from the latent correlation."""
        w = np.asarray(w, np.float64)
        general = super().gated_mean(w)  # of a Gaussian: in every direction
        if general is not None or not self.has_gated_mean(w):
            return general
        site = int(np.abs(w).argmax())
        at = [int(i) for i in np.unravel_index(site, self.shape)]
        return np.sign(w[site]) * shifted(self.site_gated_mean(), at, len(self.shape)).ravel()

    @classmethod
    def with_correlation(cls, wanted: Any, **values: Any) -> Self:
        """The stimulus of this family whose *output* has a wanted correlation: the inverse problem.

        Args:
            wanted: Correlation row of the lattice's shape, 1 at displacement zero.
            **values: The other fields (gain, k, …).

        Raises:
            InputError: When no Gaussian latent gives that correlation.

        Example:
            >>> import numpy as np, localfields as lf
            >>> wanted = lf.stimuli.Ising(40, coupling=0.7).covariance()
            >>> twin = lf.stimuli.NLGP.with_correlation(wanted, gain=100)
            >>> bool(np.allclose(twin.covariance(), wanted))
            True
        """
        row = Row(axes=None).check("wanted", wanted)
        check_row("wanted", row, row.shape)
        for name in ("shape", "xi", "kernel"):
            if name in values:
                raise InputError(f"`{name}` follows from the wanted correlation. Leave it out.")
        make: Any = cls  # every such class has shape, xi and kernel
        # Any ξ would do: the marginal does not depend on it.
        marginal = make(shape=row.shape, xi=0.1, **values).marginal()
        return make(shape=row.shape, kernel=Given(latent_row(marginal, row)), **values)


class AbstractGaussian(Stimulus):
    """What Gaussians of any covariance share: they are elliptical, and may have a mean."""

    offset = required(Real)

    @property
    def elliptical(self) -> bool:
        """The Gaussian is elliptical."""
        return True

    @property
    def gaussian(self) -> bool:
        """Yes."""
        return True

    @property
    def sign_symmetric(self) -> bool:
        """Unless it has a mean."""
        # Of swept offsets not all are zero, and of a traced one nothing is known.
        return isinstance(self.offset, float) and self.offset == 0

    def mean(self) -> float:
        """The offset."""
        return self.offset


class Gaussian(AbstractGaussian, GaussianCopula):
    """A stationary Gaussian process. Fields never localize: they become a plane wave.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.Gaussian((40,), xi=3).covariance()[:3].round(4)
        array([1.    , 0.8948, 0.6412])
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    scale: Real = number(
        default=1.0, low=0, symbol="σ", help="standard deviation of every coordinate"
    )
    offset: Real = number(default=0.0, symbol="μ", help="mean of every coordinate")
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def marginal(self) -> Marginal:
        """Normal; its mean is the stimulus's own."""
        return Normal(scale=self.scale)

    def draw(self, key: Any, num: int) -> jax.Array:
        """Correlated normals, scaled and moved."""
        return super().draw(key, num) + self.offset


class NLGP(GaussianCopula):
    """Nonlinear Gaussian process, erf(gZ)/𝒵(g): from Gaussian (g → 0) to ±1 data (g → ∞).

    The paper's main model (§2.2) and its predecessor's, which writes erf(gz/√2): that is this one
    at gain g/√2. Covariance by the arcsine law; excess kurtosis between 0 and −2 in closed form.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.NLGP((40,), xi=3, gain=100).covariance()[:3].round(4)
        array([1.    , 0.7099, 0.4459])
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    gain: Real = number(
        default=3.0,
        low=0,
        symbol="g",
        help="gain of the error function; large gains give ±1 data",
        hint="For the Gaussian limit, gain 0, use `Gaussian` or `.gaussian_clone()`.",
        limit="For ±1 data use a large gain such as 1000.",
    )
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def marginal(self) -> Marginal:
        """The distribution of erf(gZ)/𝒵."""
        return ErfNormal(self.gain)

    def site_gated_mean(self) -> np.ndarray:
        """arcsin(r√(2g²/(1 + 2g²)))/(π𝒵), which equals arctan(r/√(1/2g² + 1 − r²))/(π𝒵).

        The notes print 2√π times as much.
        """
        r = np.asarray(self.latent_correlation(), np.float64)
        twice = 2 * float(self.gain) ** 2
        spread = math.sqrt(2 / math.pi * math.asin(twice / (1 + twice)))  # 𝒵
        return np.arcsin(r * math.sqrt(twice / (1 + twice))) / (math.pi * spread)


class Kur(GaussianCopula):
    """Gaussian copula with an algebraic marginal of tail index k: kurtosis of either sign.

    Excess kurtosis is ∞ for k ≤ 4, zero at k = 5.8901 and −1.2 in the limit (paper §2.3). For k ≤ 4
    covariances estimated from samples converge too slowly to be trusted; `covariance` is exact.

    Example:
        >>> import localfields as lf
        >>> lf.stimuli.Kur((40,), xi=3, k=3).marginal().kurtosis
        inf
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    k: Real = number(
        default=10.0,
        low=2,
        symbol="k",
        help="tail index: large k gives light tails, small k heavy ones",
        hint="At k ≤ 2 the variance is infinite.",
    )
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    def marginal(self) -> Marginal:
        """The algebraic distribution."""
        return Algebraic(self.k)


class Copula(GaussianCopula):
    """Gaussian copula with any marginal: one of `lf.marginals`, or your own quantile function.

    Example:
        >>> import numpy as np, localfields as lf
        >>> copula = lf.stimuli.Copula((40,), xi=2, marginal_law=lf.marginals.Logistic())
        >>> copula.covariance()[:2].round(4)
        array([1.    , 0.7763])
        >>> skewed = lf.stimuli.Copula((40,), marginal_law=lambda u: -np.log1p(-u))  # exponential
        >>> skewed.sign_symmetric
        False
    """

    shape: Lattice = declare(LATTICE, default=(40,))
    xi: Real = declare(LENGTHSCALE, default=3.0)
    marginal_law: MarginalField = declare(
        Nested("marginal", as_marginal),
        default=Laplace(),
        symbol="F",
        help="marginal of a site: a name such as laplace or student-t:nu=5, or a quantile function",
    )
    kernel: KernelField = declare(KERNEL, default=SquaredExponential())

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a kernel given as a function, and standardize the marginal."""
        marginal = Nested("marginal", as_marginal).check("marginal_law", given["marginal_law"])
        if isinstance(marginal, SphereProjection):
            raise InputError(
                f"A copula cannot sample {show(marginal)}. Use an elliptical stimulus instead."
            )
        return normalize_kernel(given) | {"marginal_law": marginal.standardized()}

    @property
    def sign_symmetric(self) -> bool:
        """As the marginal is."""
        return self.marginal_law.symmetric

    def marginal(self) -> Marginal:
        """The distribution given, standardized."""
        return self.marginal_law


class DenseGaussian(AbstractGaussian):
    """A Gaussian with any covariance matrix, for data that are not translation invariant."""

    shape: Lattice = declare(LATTICE, default=(2,))
    matrix: Array = declare(
        Row(axes=2),
        default=((1.0, 0.0), (0.0, 1.0)),
        symbol="Σ",
        help="covariance matrix, (size, size), sites in C order",
    )
    offset: Real = number(default=0.0, symbol="μ", help="mean of every coordinate")
    root: np.ndarray = derived(lambda stimulus: stimulus._root())

    def _root(self) -> np.ndarray:
        if self.matrix.shape != (self.size, self.size):
            raise InputError(
                f"`matrix` must have shape {(self.size, self.size)}, one row and one column per "
                f"site, got {self.matrix.shape}."
            )
        if np.abs(self.matrix - self.matrix.T).max() > 1e-9 * np.abs(self.matrix).max():
            raise InputError("`matrix` is not symmetric. Average it with its transpose.")
        values, vectors = np.linalg.eigh(self.matrix)
        if not self.matrix.any():
            raise InputError("`matrix` is zero throughout. At least one site must vary.")
        if values.min() < -1e-9 * values.max():
            raise InputError(
                f"`matrix` has a negative eigenvalue, {values.min():.2g}. Set negative "
                "eigenvalues to zero first."
            )
        # The symmetric root: unlike Cholesky's, it exists for singular matrices.
        return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T

    @property
    def translation_invariant(self) -> bool:
        """Not in general."""
        return False

    def draw(self, key: Any, num: int) -> jax.Array:
        """White noise through the symmetric root."""
        white = jax.random.normal(key, (num, self.size), working_dtype())
        root = jnp.asarray(self.root, white.dtype)
        return jnp.matmul(white, root, precision=jax.lax.Precision.HIGHEST) + self.offset

    def covariance(self) -> np.ndarray:
        """The matrix, (*shape, *shape)."""
        return self.matrix.reshape(self.shape * 2)

    def marginal(self) -> Marginal | None:
        """Normal when every site has the same variance."""
        variances = np.diag(self.matrix)
        same = np.ptp(variances) <= 1e-12 * variances.max()
        return Normal(scale=math.sqrt(variances[0])) if same else None
