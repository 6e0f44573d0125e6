"""The single-site cluster expansion: a response that stays right after a weight dominates.

For a Gaussian copula X_i = T(Z_i), the potential U(w) = ½E|⟨w, X⟩| of the response is approximated
by letting one site at a time be non-Gaussian and adding up what each of them changes. The response
is the gradient of that potential, in closed form.
"""

from __future__ import annotations

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Choice, Count, declare
from ..._types import Whole
from ...errors import show
from ...marginals import Marginal
from ...stimuli import Stimulus
from ...stimuli.samples import Rows
from ..base import (
    APPROXIMATE,
    EXACT,
    Covariance,
    Coverage,
    NeuronTheory,
    Response,
    covariance_of,
    not_covered,
    not_single,
)
from .peak import MOST_SITES, PeakResponse, peak_response
from .quadrature import site_rule, symmetric_law

FLOOR = 1e-9  # of the variance that one site leaves to the others, relative to the whole


class ClusterResponse(Response):
    """f = ∇U of the single-site cluster expansion, for X of standard deviation `sd`.

    With T(z) = c₁z + 𝒩(z), ν = 1 − c₁², α = c₁Cw and s² = wᵀΣw, given Z_i = z the preactivation is
    taken as normal with mean m_i(z) = α_i z + w_i 𝒩(z) and variance v_i = s² − α_i² − νw_i².
    """

    latent: Covariance  # C
    covariance: Covariance  # Σ, at unit variance
    sd: jax.Array
    slope: jax.Array  # c₁
    z: jax.Array  # nodes of |Z|, (node,)
    weights: jax.Array
    residual: jax.Array  # 𝒩 at the nodes

    def potential(self, w: jax.Array) -> jax.Array:
        """U(w) ≈ ½E|⟨w, X⟩|, the sum of g(m, v) = E|N(m, v)| over sites; ⟨w, f(w)⟩ = U(w)."""
        _, _, variance, _, v, mean, ratio = self._given_one_site(w)
        tails = jnp.sqrt(2 / math.pi * v)[:, None] * jnp.exp(-(ratio**2))
        sizes = mean * jax.lax.erf(ratio) + tails
        gaussian = jnp.sqrt(2 / math.pi * variance)
        return 0.5 * self.sd * (gaussian + jnp.sum(sizes @ self.weights - gaussian))

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,); zero at w = 0."""
        image, alpha, variance, free, v, _, ratio = self._given_one_site(w)
        nu = 1 - self.slope**2
        gate = jax.lax.erf(ratio)  # ∂g/∂m
        along = gate @ (self.weights * self.z)  # A
        across = gate @ (self.weights * self.residual)  # B
        density = jnp.exp(-(ratio**2)) @ self.weights / jnp.sqrt(2 * math.pi * v)  # ∂g/∂v: d
        # Where v is held at its floor it depends on w through s² alone.
        moving = jnp.where(free, density, 0)
        total = jnp.sum(jnp.where(free, density, FLOOR * density))
        gaussian = (w.size - 1) / jnp.sqrt(2 * math.pi * variance)
        response = self.slope * self.latent(along - 2 * moving * alpha)
        response = response + across - 2 * nu * moving * w + 2 * (total - gaussian) * image
        return jnp.where(jnp.any(w != 0), 0.5 * self.sd * response, 0)

    def _given_one_site(self, w: jax.Array) -> tuple[jax.Array, ...]:
        """Σw, α, s², whether v is above its floor, v, m (site, node), and m/√(2v)."""
        w = jnp.where(jnp.any(w != 0), w, 1)  # any field will do there; no division by zero
        image, alpha = self.covariance(w), self.slope * self.latent(w)
        variance = jnp.vdot(w, image)
        v = variance - alpha**2 - (1 - self.slope**2) * w**2
        free = v > FLOOR * variance
        v = jnp.where(free, v, FLOOR * variance)
        mean = jnp.outer(alpha, self.z) + jnp.outer(w, self.residual)
        return image, alpha, variance, free, v, mean, mean / jnp.sqrt(2 * v)[:, None]


class ClusterFlow(NeuronTheory):
    """The single-site cluster expansion of E|⟨w, X⟩|: right before, during and after localization.

    For Gaussian copulas of any marginal, on rings and tori; data are taken as the copula with their
    marginal and covariance. It is a gradient flow, exact for Gaussian data and right to first order
    in the non-Gaussianity; the potential of a field with one nonzero weight is exact. On forty
    sites with ξ = (0.3, 0.7) the response is right to 1 % except on nearly ±1 data while a bump
    rises (3 %). It fails on nearly ±1 data with long lengthscales, by up to 8 % at ξ = (1, 3).

    `given="peak"` conditions on the site of the largest weight first, which is about five times
    more accurate for localized fields and a hundred times slower; the response then jumps by up to
    1 % when another weight becomes the largest.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=3) for xi in (0.3, 0.7)))
        >>> flow = lf.solve(task, lf.theory.ClusterFlow(), members=2, until=200)
        >>> flow.ipr[:, -1, 0].round(3)
        array([0.986, 0.986])
    """

    priority: ClassVar[int] = -2

    given: str = declare(
        Choice(("nothing", "peak")),
        default="nothing",
        help="site that is conditioned on first: nothing, or the peak of the field",
    )
    nodes: Whole = declare(
        Count(low=4, high=64, hint="12 nodes are right to 1e-5, 32 to 1e-8."),
        default=12,
        symbol="n",
        help="quadrature nodes on each panel of one site",
    )

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Gaussian copulas with a symmetric marginal, and translation-invariant data."""
        if reason := not_single("ClusterFlow", stimulus):
            return not_covered(reason)
        if isinstance(stimulus, Rows):
            if not (stimulus.translation_invariant and stimulus.sign_symmetric):
                return not_covered(
                    "ClusterFlow describes data by one marginal and one covariance row, got "
                    f"symmetry={stimulus.symmetry!r}. Use symmetry='shifts-and-signs'."
                )
        elif stimulus.latent_correlation() is None or not stimulus.sign_symmetric:
            return not_covered(
                "ClusterFlow needs a Gaussian copula X = T(Z) with an odd map T, such as NLGP, Kur "
                f"or Copula; {show(stimulus)} is not one. Use EffectiveFlow()."
            )
        if self.given == "peak" and stimulus.size > MOST_SITES:
            return not_covered(
                f"ClusterFlow(given='peak') needs tables for all pairs of sites: at most "
                f"{MOST_SITES} sites, got {stimulus.size}. Use ClusterFlow()."
            )
        return EXACT if stimulus.gaussian else APPROXIMATE

    def response(self, stimulus: Stimulus) -> ClusterResponse | PeakResponse:
        """The response of one class."""
        self.covers_class(stimulus).require()
        marginal = stimulus.marginal()
        assert marginal is not None, "see covers_class"
        row = np.asarray(stimulus.covariance(), np.float64)
        law = symmetric_law(marginal)
        if isinstance(stimulus, Rows):
            return copula_response(law, row, nodes=self.nodes, given=self.given)
        return copula_response(law, row, stimulus.latent_correlation(), self.nodes, self.given)


def copula_response(
    law: Marginal,
    row: np.ndarray,
    latent: np.ndarray | None = None,
    nodes: int = 12,
    given: str = "nothing",
) -> ClusterResponse | PeakResponse:
    """The response of the Gaussian copula with this marginal and covariance.

    Args:
        law: A symmetric marginal.
        row: Covariance at every displacement.
        latent: Correlation of the latent Gaussian; by default that which the covariance implies.
        nodes: Quadrature nodes per panel.
        given: See `ClusterFlow`.
    """
    sd, row = math.sqrt(row.flat[0]), row / row.flat[0]
    if latent is None:
        latent = law.latent_correlation(np.clip(row, -1, 1))
        latent.flat[0] = 1.0
    with jax.enable_x64(True):
        if given == "peak":
            return peak_response(law, row, latent, sd)
        rule = site_rule(law, nodes)
        return ClusterResponse(
            latent=covariance_of(latent, row.shape),
            covariance=covariance_of(row, row.shape),
            sd=jnp.asarray(sd),
            slope=jnp.asarray(rule.slope),
            z=jnp.asarray(rule.z),
            weights=jnp.asarray(rule.weights),
            residual=jnp.asarray(rule.values - rule.slope * rule.z),
        )
