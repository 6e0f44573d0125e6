"""The loss before learning, averaged over random first fields: why it depends on the gain (asked in working note 3).

Given a stimulus x, the preactivations of first weights drawn from N(0, v) are independent normals of variance v|x|².
The average over starts therefore depends on a class only through the law of |X|, the length of its stimuli. At a fixed
variance that length spreads the less the larger the gain (±1 data have |X| = √N), so that E|X| rises: by Jensen's
inequality the loss of a ReLU neuron falls, and that of an erf neuron rises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...errors import Said, refuse
from ...lattice import spectrum
from ...marginals import TwoPoint
from ...networks import Committee, Network, SingleNeuron
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ..checks.draws import GROUPS, Covariances, draws
from .reduced import Estimate

# Nodes x of the trapezoidal rule over t = eˣ; the integrands fall as e^(−|x|/2) or faster on either side.
NODES = np.arange(-75.0, 75.0, 0.125)


def mean_initial_loss(
    task: Discrimination, network: Network | None = None, *, num: int | None = None, seed: int = 0
) -> Estimate:
    """Population loss at the start, averaged over all starts of the network: exact but for the law of |X|.

    With R = v|X|², v the variance of the first weights, and K neurons

        E L = Σ_c p_c (y_c² − 2 y_c E m(R) + E σ²(R)/K + (1 − 1/K) E m(R)²);

    for ReLU m = √(R/2π) and σ² = R/2, for erf(x/√2) m = 0 and σ² = (2/π) arcsin(R/(1 + R)). Half of it is the notes'
    loss. For Gaussian classes the law of |X|² enters by its Laplace transform, for ±1 data |X|² = N; of others |X| is
    drawn.

    Args:
        task: Sign-symmetric classes under mean squared error, one number a class.
        network: A `SingleNeuron` or `Committee` without biases, relu or erf, starting from normal weights; one ReLU
            neuron with initial variance 2/(N + 1) by default, the setting of the notes.
        num: Draws of each class whose law of |X| is not known.
        seed: Of the draws.

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
    activation = _checked(task, network)
    variance = float(network.init_scale) * 2 / (task.size + network.hidden)
    losses = np.asarray(float(task.l2) * network.hidden * variance * task.size)
    for stimulus, label, prior in zip(task.stimuli, task.targets()[:, 0], task.priors, strict=True):
        mean: Any = 0.0  # not asked for where it does not enter
        if activation == "erf" or label != 0:
            mean = _mean_over_lengths(stimulus, activation, variance, num, seed)
        if activation == "erf":
            part = label**2 + 2 / math.pi * mean / network.hidden
        else:
            power = variance * _mean_square(stimulus)  # E R
            part = label**2 - 2 * label * mean / math.sqrt(2 * math.pi)
            part += power / 2 / network.hidden + (1 - 1 / network.hidden) * power / (2 * math.pi)
        losses = losses + prior * part
    # Classes are drawn from one seed, and so not independent: their sum has the error, group by group.
    error = losses.std(ddof=1) / math.sqrt(GROUPS) if losses.ndim else 0.0
    return Estimate(float(losses.mean()), float(error))


def mean_abs_by_kurtosis(variance: Any, excess_kurtosis: Any) -> Any:
    """E|S| ≈ √(2q/π)(1 − κ/24) of a nearly normal S, κ its excess kurtosis: it grows as S becomes platykurtic.

    The next terms are of second order in κ and of first order in the sixth cumulant. It is for laws with a density:
    sums of equal ±1 weights have atoms, the one at zero among them, which count as much.

    Example:
        >>> round(float(mean_abs_by_kurtosis(1.0, -1.2 / 10)) / math.sqrt(2 / math.pi), 4)  # ten uniform variables
        1.005
    """
    return np.sqrt(2 * np.asarray(variance) / np.pi) * (1 - np.asarray(excess_kurtosis) / 24)


def _checked(task: Discrimination, network: Network) -> str:
    activation = getattr(network, "activation", "")
    plain = (
        type(network) in (SingleNeuron, Committee) and getattr(network, "bias", "none") == "none"
    )
    if (
        not plain
        or activation not in ("relu", "erf")
        or network.init != "glorot"
        or np.ndim(network.init_scale)
    ):
        advice = "Use init='glorot' and activation relu or erf."
        refuse(
            "The network for mean_initial_loss",
            network,
            "one neuron or a committee without biases",
            advice,
        )
    task.require_one("for mean_initial_loss")
    if task.loss != "mse" or task.outputs != 1 or task.l1 != 0:
        got = Said(f"loss {task.loss!r}, labels {task.labels!r}, l1 = {task.l1}")
        refuse(
            "The task for mean_initial_loss",
            got,
            "mean squared error, one number a class, l1 = 0",
            "Change it.",
        )
    return activation


def _mean_square(stimulus: Stimulus) -> float:
    """E|X|²."""
    return float(Covariances(stimulus).variances().sum()) + stimulus.size * stimulus.mean() ** 2


def _function(activation: str, r: Any) -> Any:
    """What is averaged over R: its root, or the angle of erf."""
    return np.sqrt(r) if activation == "relu" else np.arcsin(r / (1 + r))


def _mean_over_lengths(
    stimulus: Stimulus, activation: str, variance: float, num: int | None, seed: int
) -> Any:
    """The mean over R of the function above: one number where it is exact, else one of each group of draws."""
    law = stimulus.marginal()
    if isinstance(law, TwoPoint):
        return _function(activation, variance * _mean_square(stimulus))
    if stimulus.gaussian and stimulus.mean() == 0:
        return _by_laplace_transform(activation, variance * _eigenvalues(stimulus))
    sums, count = np.zeros(GROUPS), np.zeros(GROUPS)
    # What the function is minus its tangent at the mean has the same average, E R being known, and varies far less.
    power = variance * _mean_square(stimulus)
    level = float(_function(activation, power))
    slope = (
        0.5 / math.sqrt(power)
        if activation == "relu"
        else 1 / ((1 + power) * math.sqrt(1 + 2 * power))
    )
    for group, x in draws(stimulus, num, seed):
        r = variance * np.sum(x**2, axis=1)
        sums[group] += np.sum(_function(activation, r) - slope * (r - power) - level)
        count[group] += len(x)
    return level + sums / count


def _eigenvalues(stimulus: Stimulus) -> np.ndarray:
    values = stimulus.covariance()
    if values.shape == stimulus.shape:
        return np.maximum(spectrum(values).ravel(), 0)
    return np.maximum(np.linalg.eigvalsh(values.reshape(stimulus.size, -1)), 0)


def _by_laplace_transform(activation: str, eigenvalues: np.ndarray) -> float:
    """E√R or E arcsin(R/(1 + R)) for R = Σ λ_k z_k², z standard normal, from E e^(−tR) = Π(1 + 2tλ_k)^(−½).

    √R = ∫(1 − e^(−tR)) t^(−3/2) dt/(2√π) and arcsin(R/(1 + R)) = ∫(1 − e^(−tR)) ρ(t)/t dt with
    ρ = (2/√π) e^(−t/2) D(√(t/2)), D Dawson's function: its derivative 1/((1 + R)√(1 + 2R)) is a product of two Laplace
    transforms.
    """
    t = np.exp(NODES)
    missing = -np.expm1(-0.5 * np.log1p(2 * t[:, None] * eigenvalues[None, :]).sum(axis=1))
    if activation == "relu":
        density = 1 / (2 * np.sqrt(np.pi * t))
    else:
        density = 2 / math.sqrt(math.pi) * np.exp(-t / 2) * scipy.special.dawsn(np.sqrt(t / 2))
    return float(np.sum(missing * density) * (NODES[1] - NODES[0]))
