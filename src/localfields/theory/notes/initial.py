"""The loss before learning, averaged over random initial fields (asked in working note 3).

Given a stimulus x, the preactivations of initial weights from N(0, v) are independent normals of
variance v|x|². The average over starts therefore depends on a class only through the distribution
of |X|. At a fixed variance that length spreads the less the larger the gain (±1 data have |X| =
√N), so that E|X| rises: by Jensen's inequality the loss of a ReLU neuron falls, that of an erf
neuron rises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...errors import InputError, show
from ...lattice import spectrum
from ...marginals import TwoPoint
from ...networks import Committee, Network, SingleNeuron
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ..base import not_mse, raise_if, site_variances
from ..checks.sampling import GROUPS, sample_groups
from .reduced import SampledValue

# Nodes x of the trapezoidal rule over t = eˣ; the integrands fall as e^(−|x|/2) or faster on either
# side.
LAPLACE_NODES = np.arange(-75.0, 75.0, 0.125)


def mean_initial_loss(
    task: Discrimination, network: Network | None = None, *, num: int | None = None, seed: int = 0
) -> SampledValue:
    """Population loss at the start, averaged over all starts of the network.

    With R = v|X|², v the variance of the initial weights, and K neurons

        E L = Σ_c p_c (y_c² − 2 y_c E m(R) + E σ²(R)/K + (1 − 1/K) E m(R)²);

    for ReLU m = √(R/2π) and σ² = R/2, for erf(x/√2) m = 0 and σ² = (2/π) arcsin(R/(1 + R)). Half of
    it is the notes' loss. For Gaussian classes the distribution of |X|² enters by its Laplace
    transform, for ±1 data |X|² = N; for others |X| is sampled.

    Args:
        task: Sign-symmetric classes under mean squared error, one number per class.
        network: A `SingleNeuron` or `Committee` without biases, relu or erf, with normal initial
            weights; by default one ReLU neuron with variance 2/(N + 1), the setting of the notes.
        num: Number of samples of each class whose distribution of |X| is not known.
        seed: Seed of the samples.

    Returns:
        The average and its standard error.

    Example:
        >>> import localfields as lf
        >>> def at(gain):
        ...     short, long = (lf.stimuli.NLGP(40, xi=xi, gain=gain) for xi in (1, 3))
        ...     return mean_initial_loss(lf.Discrimination(short, long), num=20_000).value / 2
        >>> round(at(0.01), 3), round(at(100), 3)  # the notes' loss falls as the gain rises
        (0.465, 0.459)
    """
    network = SingleNeuron(init_scale=1.0) if network is None else network
    activation = getattr(network, "activation", "")
    committee = type(network) in (SingleNeuron, Committee)
    if (
        not committee
        or getattr(network, "bias", "none") != "none"
        or activation not in ("relu", "erf")
        or network.init != "glorot"
        or np.ndim(network.init_scale)
    ):
        raise InputError(
            "mean_initial_loss covers SingleNeuron and Committee without biases, with activation "
            f"relu or erf and init='glorot', got {show(network)}."
        )
    raise_if(not_mse("mean_initial_loss", task, l1=False))
    variance = float(network.init_scale) * 2 / (task.size + network.hidden)
    losses = np.asarray(float(task.l2) * network.hidden * variance * task.size)
    for stimulus, label, prior in zip(task.stimuli, task.targets()[:, 0], task.priors, strict=True):
        mean: Any = 0.0  # computed only if it matters
        if activation == "erf" or label != 0:
            mean = _mean_over_lengths(stimulus, activation, variance, num, seed)
        if activation == "erf":
            part = label**2 + 2 / math.pi * mean / network.hidden
        else:
            power = variance * _mean_square(stimulus)  # E R
            part = label**2 - 2 * label * mean / math.sqrt(2 * math.pi)
            part += power / 2 / network.hidden + (1 - 1 / network.hidden) * power / (2 * math.pi)
        losses = losses + prior * part
    # Classes share one seed, and so are not independent: the error is that of their sum by group.
    error = losses.std(ddof=1) / math.sqrt(GROUPS) if losses.ndim else 0.0
    return SampledValue(float(losses.mean()), float(error))


def _mean_square(stimulus: Stimulus) -> float:
    """E|X|²."""
    return float(site_variances(stimulus).sum()) + stimulus.size * stimulus.mean() ** 2


def _function(activation: str, r: Any) -> Any:
    """The function of R that is averaged."""
    return np.sqrt(r) if activation == "relu" else np.arcsin(r / (1 + r))


def _mean_over_lengths(
    stimulus: Stimulus, activation: str, variance: float, num: int | None, seed: int
) -> Any:
    """The mean over R of the function above: one number if it is exact, else one per group."""
    power = variance * _mean_square(stimulus)
    if isinstance(stimulus.marginal(), TwoPoint):
        return _function(activation, power)
    if stimulus.gaussian and stimulus.mean() == 0:
        values = stimulus.covariance()
        eigenvalues = (
            spectrum(values).ravel()
            if values.shape == stimulus.shape
            else np.linalg.eigvalsh(values.reshape(stimulus.size, -1))
        )
        return _by_laplace_transform(activation, variance * np.maximum(eigenvalues, 0))
    sums, count = np.zeros(GROUPS), np.zeros(GROUPS)
    # A control variate: the tangent at the mean E R, which is known, varies with the function.
    level = float(_function(activation, power))
    slope = (
        0.5 / math.sqrt(power)
        if activation == "relu"
        else 1 / ((1 + power) * math.sqrt(1 + 2 * power))
    )
    for group, x in sample_groups(stimulus, num, seed):
        r = variance * np.sum(x**2, axis=1)
        sums[group] += np.sum(_function(activation, r) - slope * (r - power) - level)
        count[group] += len(x)
    return level + sums / count


def _by_laplace_transform(activation: str, eigenvalues: np.ndarray) -> float:
    """E√R or E arcsin(R/(1 + R)) for R = Σ λ_k z_k², from E e^(−tR) = Π(1 + 2tλ_k)^(−½).

    √R = ∫(1 − e^(−tR)) t^(−3/2) dt/(2√π) and arcsin(R/(1 + R)) = ∫(1 − e^(−tR)) ρ(t)/t dt with ρ =
    (2/√π) e^(−t/2) D(√(t/2)), D Dawson's function: the derivative 1/((1 + R)√(1 + 2R)) is a product
    of two Laplace transforms.
    """
    t = np.exp(LAPLACE_NODES)
    missing = -np.expm1(-0.5 * np.log1p(2 * t[:, None] * eigenvalues[None, :]).sum(axis=1))
    if activation == "relu":
        density = 1 / (2 * np.sqrt(np.pi * t))
    else:
        density = 2 / math.sqrt(math.pi) * np.exp(-t / 2) * scipy.special.dawsn(np.sqrt(t / 2))
    return float(np.sum(missing * density) * (LAPLACE_NODES[1] - LAPLACE_NODES[0]))
