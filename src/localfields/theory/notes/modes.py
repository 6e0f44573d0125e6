"""One ReLU neuron on elliptical data in Fourier space: how each wave grows and decays.

The flow is diagonal but for one number per labelled class, s_c = √(wᵀΣ_c w). With T_c = ∫ dt/s_c

    u_k(t) = u_k(0) exp(Σ_c 2 p_c y_c m_c λ_ck T_c(t) − (λ̄_k + 2λ₂) t),

so that the field follows from one scalar equation dT_c/dt = 1/s_c per labelled class.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.special

from ..._spec import Row
from ...errors import InputError, show
from ...lattice import spectrum
from ...tasks import Discrimination
from ..responses.linear import LinearResponse, check_waves, plane_waves

MODE_TOLERANCE = 1e-10  # of the integrator
MAX_LOG_SPEED = 60.0  # logarithm of 1/s from which a field counts as extinct: 1e-26


@dataclasses.dataclass(frozen=True, eq=False)
class ModeFlow:
    """A field of one neuron over flow time, wave by wave; see `follow_modes`.

    Attributes:
        times: Flow times, (time,).
        frequencies: k of every wave, cycles around each axis; k and −k are the same wave.
        amplitudes: |u_k|, the norm of the field's part in that wave, (time, wave). Phases never
            change.
        initial: The initial field, of the lattice's shape.
        growth: Factor on each Fourier coefficient of the initial field, (time, *shape).
    """

    times: np.ndarray
    frequencies: tuple[tuple[int, ...], ...]
    amplitudes: np.ndarray
    initial: np.ndarray
    growth: np.ndarray

    @property
    def fields(self) -> np.ndarray:
        """The field, (time, *shape)."""
        axes = tuple(range(1, self.growth.ndim))
        return np.fft.ifftn(self.growth * np.fft.fftn(self.initial), axes=axes).real

    @property
    def shares(self) -> np.ndarray:
        """Fraction of ‖w‖² in each wave, (time, wave)."""
        square = self.amplitudes**2
        return square / square.sum(axis=1, keepdims=True)

    @property
    def leader(self) -> tuple[tuple[int, ...], ...]:
        """The wave with the largest share at each time."""
        return tuple(self.frequencies[k] for k in self.amplitudes.argmax(axis=1))

    def takeover(self, frequency: int | tuple[int, ...], share: float = 0.5) -> float:
        """Flow time from which on a wave has this share of ‖w‖², interpolated; nan if never.

        Args:
            frequency: k, cycles around each axis.
            share: Between 0 and 1.
        """
        wave = (frequency,) if isinstance(frequency, int) else tuple(frequency)
        if wave not in self.frequencies:
            raise InputError(
                f"There is no wave of `frequency` {show(frequency)}. "
                "Give one of `frequencies`; k and −k are the same wave."
            )
        shares = self.shares[:, self.frequencies.index(wave)]
        below = np.flatnonzero(~(shares >= share))
        if below.size == 0:
            return float(self.times[0])
        last = int(below[-1])
        if last == len(shares) - 1:
            return float("nan")
        part = (share - shares[last]) / (shares[last + 1] - shares[last])
        return float(self.times[last] + part * (self.times[last + 1] - self.times[last]))


def follow_modes(
    task: Discrimination, initial: Any, times: Any, theory: LinearResponse | None = None
) -> ModeFlow:
    """Follow every wave of a field: which wins, and how fast.

    `winning_mode` predicts the final wave and the rates at which others decay beside it; this
    follows a given start exactly, for any labels, priors and L2 penalty.

    Args:
        task: Elliptical, translation-invariant classes under mean squared error.
        initial: The initial field, of the lattice's shape, such as `run.initial[0, 0]`.
        times: Increasing flow times from 0 on, (time,).
        theory: `LinearResponse(slope="gaussian")` to use only the covariances of other data.

    Returns:
        The waves over time; nan from when a negative label has extinguished the field.

    Raises:
        InputError: If the task has no such closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=2))
        >>> start = 0.01 * np.cos(2 * np.pi * 3 * np.arange(40) / 40) + 1e-4
        >>> flow = follow_modes(task, start, np.linspace(0, 200, 101))
        >>> flow.leader[10], flow.leader[-1]  # three cycles, until the flat field takes over
        ((3,), (0,))
    """
    theory = theory or LinearResponse()
    check_waves("follow_modes", task)
    start = Row(axes=None, hint="Give one number per site.").check("initial", initial)
    if start.shape != task.shape:
        raise InputError(
            f"`initial` must have the lattice's shape {task.shape}, got {start.shape}."
        )
    when = Row(hint="Give flow times, such as [0, 1, 10].").check("times", times)
    if when[0] < 0 or (np.diff(when) <= 0).any():
        raise InputError(f"`times` must increase from 0 or later, got {show(times)}.")
    spectra = np.stack(
        [np.maximum(spectrum(stimulus.covariance()), 0).ravel() for stimulus in task.stimuli]
    )
    labels, priors = task.targets()[:, 0], np.asarray(task.priors)
    labelled = np.flatnonzero(labels)
    decay = priors @ spectra + 2 * float(task.l2)
    pull = np.array(
        [2 * priors[c] * labels[c] * theory.slope_of(task.stimuli[c]) for c in labelled]
    )
    power = np.abs(np.fft.fftn(start)).ravel() ** 2 / start.size
    logarithms = _log_growth(when, spectra[labelled], pull, decay, power)
    growth = np.exp(logarithms).reshape(len(when), *task.shape)
    waves = plane_waves(task.shape)
    lengths = np.sqrt(power) * np.exp(logarithms)
    amplitudes = np.stack(
        [np.sqrt((lengths[:, rows] ** 2).sum(axis=1)) for rows in waves.values()], axis=1
    )
    return ModeFlow(when, tuple(waves), amplitudes, start, growth)


def _log_growth(
    times: np.ndarray, spectra: np.ndarray, pull: np.ndarray, decay: np.ndarray, power: np.ndarray
) -> np.ndarray:
    """Logarithms of u_k(t)/u_k(0), (time, mode), from T_c(t)."""
    from scipy.integrate import solve_ivp  # late: it loads scipy.optimize

    if not len(pull) or not power.any():  # no class is labelled, or the field is zero
        return -decay[None, :] * times[:, None]
    with np.errstate(divide="ignore"):
        weights = np.log(spectra * power)  # of λ_ck u_k(0)², −∞ for zeros

    def exponents(t: float, total: np.ndarray) -> np.ndarray:
        return (pull * total) @ spectra - decay * t

    def speed(t: float, total: np.ndarray) -> np.ndarray:
        # In logarithms, as amplitudes of different waves differ by hundreds of orders of magnitude.
        squares = scipy.special.logsumexp(weights + 2 * exponents(t, total)[None, :], axis=1)
        return np.exp(np.minimum(-0.5 * squares, MAX_LOG_SPEED))

    def until_extinct(t: float, total: np.ndarray) -> float:
        return float(MAX_LOG_SPEED - np.log(speed(t, total)).max())

    setattr(until_extinct, "terminal", True)  # noqa: B010 (stops the integrator)
    solution: Any = solve_ivp(
        speed,
        (0.0, float(times[-1]) or 1.0),
        np.zeros(len(pull)),
        method="LSODA",
        rtol=MODE_TOLERANCE,
        atol=MODE_TOLERANCE * 1e-2,
        t_eval=times,
        events=until_extinct,
    )
    logarithms = np.full((len(times), power.size), np.nan)
    for row, (t, total) in enumerate(zip(solution.t, solution.y.T, strict=True)):
        logarithms[row] = exponents(t, total)
    return logarithms
