"""The paper's effective flow: a bump or a wave, decided by the amplifier of the marginal."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Choice, Count, Row, declare
from ..._types import Array, Whole
from ...errors import InputError, show
from ...stimuli import Stimulus
from ..base import (
    APPROXIMATE,
    Covariance,
    Coverage,
    NeuronTheory,
    Response,
    covariance_of,
    not_covered,
    not_single,
    site_variances,
)
from .amplifier import Amplifier

NUM_VALUES = 100_000  # sampled to estimate an amplifier if no marginal is known


class EffectiveResponse(Response):
    """f_i ≈ (σ/2) φ(a_i), where a_i is the correlation of X_i with the preactivation."""

    covariance: Covariance
    sd: jax.Array
    amplifier: Any  # a function of β = a/√(1 − a²)

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,)."""
        product = self.covariance(w)
        total = jnp.vdot(w, product) * self.sd**2
        # β is formed from s²σ² − (Σw)², not from a rounded 1 − a²: it stays right up to a = 1.
        rest = jnp.maximum(total - product**2, jnp.finfo(w.dtype).eps ** 2 * total)
        beta = jnp.where(total > 0, product / jnp.sqrt(jnp.where(total > 0, rest, 1)), 0)
        return 0.5 * self.sd * self.amplifier(beta)


class TaylorAmplifier(eqx.Module):
    """The Taylor polynomial of an amplifier in a."""

    coefficients: jax.Array  # of a, a³, a⁵, …

    def __call__(self, beta: jax.Array) -> jax.Array:
        """The polynomial, at a = β/√(1 + β²)."""
        a = beta / jnp.sqrt(1 + beta**2)
        value = jnp.zeros_like(a)
        for coefficient in self.coefficients[::-1]:
            value = value * a**2 + coefficient
        return a * value


class EffectiveFlow(NeuronTheory):
    """Eq. 5 of the paper: each site feels its own marginal, and all others through a central limit.

    2 ẇ = φ(Σ₁w/s) − (Σ₀ + Σ₁)w for two equal classes with labels 0 and 1; any labels, priors and
    number of classes work. It is right while no weight dominates (relative error about 2/N for
    random fields on Ising data, 10 % for a bump of any N); linear φ is the Gaussian case.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> lf.solve(task, lf.theory.EffectiveFlow(), members=2, until=100).final.shape
        (2, 1, 40)
    """

    priority: ClassVar[int] = -1  # it covers nearly everything: specific theories come first

    amplifier: str = declare(
        Choice(("exact", "taylor", "samples")),
        default="exact",
        symbol="φ",
        help="exact from the marginal, its Taylor polynomial, or estimated from samples",
    )
    order: Whole = declare(
        Count(low=1, high=15), default=3, symbol="n", help="order of the Taylor polynomial, odd"
    )
    samples: Array = declare(
        Row(axes=None, least=0),
        default=(),
        symbol="x",
        help="values of one coordinate; empty: sampled from the stimulus",
    )

    def __check_init__(self):
        """Check the order."""
        if self.order % 2 == 0:
            raise InputError(
                f"`order` must be odd, got {self.order}. "
                "The amplifier is an odd function: use 1, 3, 5, …."
            )

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Every class whose sites have one variance and one marginal, known or sampled."""
        if reason := not_single("EffectiveFlow", stimulus):
            return not_covered(reason)
        variance = site_variances(stimulus)
        if np.ptp(variance) > 1e-9 * np.max(variance):
            return not_covered(
                "EffectiveFlow needs sites of equal variance, got variances from "
                f"{variance.min():.3g} to {variance.max():.3g}. Normalize every site."
            )
        if self.amplifier != "samples" and stimulus.marginal() is None:
            return not_covered(
                f"The marginal of {show(stimulus)} is not known. "
                "Use EffectiveFlow(amplifier='samples')."
            )
        return APPROXIMATE

    def response(self, stimulus: Stimulus) -> EffectiveResponse:
        """The response of one class through its amplifier."""
        self.covers_class(stimulus).require()
        sd = float(np.sqrt(np.max(site_variances(stimulus))))
        amplifier = self._amplifier(stimulus)
        with jax.enable_x64(True):
            if self.amplifier == "taylor":
                coefficients = amplifier.taylor(self.order).coef[1::2]
                function: Any = TaylorAmplifier(jnp.asarray(coefficients))
            else:
                function = amplifier.table()
            values = np.asarray(stimulus.covariance(), np.float64)
            product = covariance_of(values, stimulus.shape)
            return EffectiveResponse(product, jnp.asarray(sd), function)

    def _amplifier(self, stimulus: Stimulus) -> Amplifier:
        if self.amplifier != "samples":
            marginal = stimulus.marginal()
            assert marginal is not None, "see covers_class"
            return Amplifier(marginal)
        if self.samples.size:
            return Amplifier.of_samples(np.asarray(self.samples, np.float64).ravel())
        # A fixed seed: a theory is a function of the task, and the same each time.
        sampled = np.asarray(stimulus.sample(0, NUM_VALUES // stimulus.size + 1))
        return Amplifier.of_samples(np.asarray(sampled, np.float64).ravel())
