"""Restricted Boltzmann machine, through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._spec import Count, declare, number
from .._types import Real, Whole
from .base import Baseline, Fitted, check_seed


class RBM(Baseline):
    """Bernoulli restricted Boltzmann machine, by persistent contrastive divergence (Tieleman 2008).

    Its inputs are probabilities. Samples are mapped to [0, 1] by one straight line for all sites,
    from the smallest value to the largest, or as far as `clip` standard deviations from the mean
    where they go farther; values beyond become 0 or 1. So ±1 becomes 0 and 1 exactly, and a heavy
    tail does not squeeze everything else to ½. The fields are the rows of `components_` in
    scikit-learn over the width of that interval: a hidden unit is on with probability σ(⟨field, x⟩
    + constant) for a sample x inside it.

    Example:
        >>> import localfields as lf
        >>> x = lf.stimuli.Ising((12,), coupling=0.7).sample(0, 500)
        >>> RBM(4, steps=10).fit(x).fields.shape
        (4, 12)
    """

    components: Whole = declare(
        Count(high=100_000), default=40, help="number of fields; may be more than sites"
    )
    learning_rate: Real = number(default=0.1, low=0, help="step size")
    steps: Whole = declare(
        Count(high=10**8),
        default=20_000,
        help="mini-batches; the last pass over the samples is finished",
    )
    batch: Whole = declare(Count(high=10**6), default=100, help="samples per step")
    clip: Real = number(
        default=1.0, low=0, help="standard deviations from the mean that still fit into [0, 1]"
    )

    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields from samples, (num, size); see `Baseline.fit`.

        Returns:
            Fields. Iterations are mini-batches. Notes: `low` and `high`, what became 0 and 1, and
            `pseudo_likelihood`, the mean log-probability of a sample by its sites one at a time
            given all others (Besag 1975).

        Raises:
            InputError: If the samples cannot be fitted.
        """
        from sklearn.neural_network import BernoulliRBM as Fit

        x = self.check_samples(samples, overcomplete=True)
        low, high = self.limits(x)
        scaled = np.clip((x - low) / (high - low), 0, 1)
        # scikit-learn counts passes over the samples, not steps.
        batch = min(self.batch, len(x))
        of_pass = -(-len(x) // batch)
        passes = -(-self.steps // of_pass)
        method = Fit(
            self.components,
            learning_rate=self.learning_rate,
            batch_size=batch,
            n_iter=passes,
            random_state=check_seed(seed),
        )
        method.fit(scaled)
        fields = np.asarray(method.components_, np.float64)
        visible = np.asarray(method.intercept_visible_, np.float64)
        hidden = np.asarray(method.intercept_hidden_, np.float64)
        likelihood = pseudo_likelihood(fields, visible, hidden, scaled[:: max(1, len(x) // 1000)])
        notes = {"low": low, "high": high, "pseudo_likelihood": likelihood}
        # Fields on the samples as they were given, before they were scaled to [0, 1].
        return Fitted(fields / (high - low), True, passes * of_pass, notes)

    def limits(self, x: np.ndarray) -> tuple[float, float]:
        """What becomes 0 and what becomes 1.

        Example:
            >>> RBM().limits(np.array([[-1.0, 1.0], [1.0, -1.0]]))
            (-1.0, 1.0)
        """
        mean, spread = float(x.mean(dtype=np.float64)), self.clip * float(x.std(dtype=np.float64))
        return max(float(x.min()), mean - spread), min(float(x.max()), mean + spread)


def free_energy(
    weights: np.ndarray, visible: np.ndarray, hidden: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Free energy −v·a − Σₖ log(1 + e^(Wₖ·v + bₖ)) of each row: −log p(v) − log Z."""
    return -v @ visible - np.logaddexp(0, v @ weights.T + hidden).sum(axis=1)


def pseudo_likelihood(
    weights: np.ndarray, visible: np.ndarray, hidden: np.ndarray, v: np.ndarray
) -> float:
    """Mean of Σᵢ log P(vᵢ | the others) over samples; sklearn flips one random site instead."""
    energy, total = free_energy(weights, visible, hidden, v), 0.0
    for site in range(v.shape[1]):
        flipped = v.copy()
        flipped[:, site] = 1 - flipped[:, site]
        other = free_energy(weights, visible, hidden, flipped)
        total -= float(np.logaddexp(0, energy - other).mean())
    return total
