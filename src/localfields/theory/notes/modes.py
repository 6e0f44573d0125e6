"""One ReLU neuron on elliptical data, in Fourier space: how every wave of its field grows and dies.

The flow is diagonal but for one number a labelled class, s_c = √(wᵀΣ_c w), so that with T_c = ∫ dt/s_c

    u_k(t) = u_k(0) exp(Σ_c 2 p_c y_c m_c λ_ck T_c(t) − (λ̄_k + 2λ₂) t),

and the whole field follows from as many scalar equations dT_c/dt = 1/s_c as there are labels other than zero.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special

from ..._spec import Row
from ...errors import Said, refuse
from ...lattice import spectrum
from ...tasks import Discrimination
from ..responses.linear import LinearResponse, check_waves, plane_waves

TOLERANCE = 1e-10  # of the integrator
LARGEST = 60.0  # logarithm of 1/s from which a field counts as gone: 1e-26


@dataclasses.dataclass(frozen=True, eq=False)
class ModeFlow:
    """A field of one neuron over flow time, wave by wave. `follow_modes` makes it.

    Attributes:
        times: Flow times, (time,).
        frequencies: k of every wave, cycles around each axis; k and −k are one.
        amplitudes: |u_k|, the length of the field's part in that wave (cosine and sine together), (time, wave).
            Phases never change.
        initial: The field at the start, of the lattice's shape.
        growth: By what each Fourier coefficient of the start has been multiplied, (time, *shape), as the FFT orders
            them.
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
        """Flow time from which a wave holds this share of ‖w‖² until the end, interpolated; nan if it does not.

        Args:
            frequency: k, cycles around each axis.
            share: Between 0 and 1.
        """
        wanted = (frequency,) if isinstance(frequency, int) else tuple(frequency)
        if wanted not in self.frequencies:
            advice = "Give one from `frequencies`; k and −k are one wave."
            refuse("`frequency`", frequency, f"one of the {len(self.frequencies)} waves", advice)
        held = self.shares[:, self.frequencies.index(wanted)]
        below = np.flatnonzero(~(held >= share))
        if below.size == 0:
            return float(self.times[0])
        last = int(below[-1])
        if last == len(held) - 1:
            return float("nan")
        part = (share - held[last]) / (held[last + 1] - held[last])
        return float(self.times[last] + part * (self.times[last + 1] - self.times[last]))


def follow_modes(
    task: Discrimination, initial: Any, times: Any, theory: LinearResponse | None = None
) -> ModeFlow:
    """Follow every wave of a field: which wins, and how fast.

    `winning_mode` says which wave is left in the end, at which rates the others die beside it; this says what happens
    before, from a given start, exactly. Any labels, proportions and L2 penalty.

    Args:
        task: Elliptical, translation-invariant classes under mean squared error.
        initial: The field at the start, of the lattice's shape, such as `run.initial[0, 0]`.
        times: Flow times, rising from 0 on, (time,).
        theory: `LinearResponse(slope="gaussian")` to take only the covariances of other laws.

    Returns:
        The waves over time; nan from where a negative label has extinguished the field, which takes finite time.

    Raises:
        InputError: When the task has no such closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=2))
        >>> start = 0.01 * np.cos(2 * np.pi * 3 * np.arange(40) / 40) + 1e-4
        >>> found = follow_modes(task, start, np.linspace(0, 200, 101))
        >>> found.leader[10], found.leader[-1]  # a wave of three cycles, until the flat field takes over
        ((3,), (0,))
    """
    theory = theory or LinearResponse()
    check_waves("follow_modes", task)
    start = Row(axes=None, hint="Give one number a site.").check("initial", initial)
    if start.shape != task.shape:
        refuse(
            "`initial`",
            Said(f"shape {start.shape}"),
            f"of the lattice's shape {task.shape}",
            "Give one field.",
        )
    when = Row(hint="Give flow times, such as [0, 1, 10].").check("times", times)
    if when[0] < 0 or (np.diff(when) <= 0).any():
        got = Said("some that do not increase, or negative ones")
        refuse("`times`", got, "increasing from 0 or later", "Sort them.")
    spectra = np.stack([np.maximum(spectrum(one.covariance()), 0).ravel() for one in task.stimuli])
    labels, priors = task.targets()[:, 0], np.asarray(task.priors)
    marked = np.flatnonzero(labels)
    decay = priors @ spectra + 2 * float(task.l2)
    pull = np.array([2 * priors[c] * labels[c] * theory.slope_of(task.stimuli[c]) for c in marked])
    power = np.abs(np.fft.fftn(start)).ravel() ** 2 / start.size
    logarithms = _integrated(when, spectra[marked], pull, decay, power)
    growth = np.exp(logarithms).reshape(len(when), *task.shape)
    waves = plane_waves(task.shape)
    lengths = np.sqrt(power) * np.exp(logarithms)
    amplitudes = np.stack(
        [np.sqrt((lengths[:, rows] ** 2).sum(axis=1)) for rows in waves.values()], axis=1
    )
    return ModeFlow(when, tuple(waves), amplitudes, start, growth)


def _integrated(
    times: np.ndarray, spectra: np.ndarray, pull: np.ndarray, decay: np.ndarray, power: np.ndarray
) -> np.ndarray:
    """Logarithms of u_k(t)/u_k(0), (time, mode), from T_c(t)."""
    if not len(pull) or not power.any():  # no class pulls, or there is no field
        return -decay[None, :] * times[:, None]
    with np.errstate(divide="ignore"):
        weights = np.log(spectra * power)  # of λ_ck u_k(0)², −∞ where there is none

    def exponents(t: float, total: np.ndarray) -> np.ndarray:
        return (pull * total) @ spectra - decay * t

    def speed(t: float, total: np.ndarray) -> np.ndarray:
        squares = scipy.special.logsumexp(weights + 2 * exponents(t, total)[None, :], axis=1)
        return np.exp(np.minimum(-0.5 * squares, LARGEST))

    def left(t: float, total: np.ndarray) -> float:
        return float(LARGEST - np.log(speed(t, total)).max())

    setattr(left, "terminal", True)  # noqa: B010 (stops the integrator)
    options = {
        "method": "LSODA",
        "rtol": TOLERANCE,
        "atol": TOLERANCE * 1e-2,
        "t_eval": times,
        "events": left,
    }
    found = scipy.integrate.solve_ivp(
        speed, (0.0, float(times[-1]) or 1.0), np.zeros(len(pull)), **options
    )
    reached = np.full((len(times), power.size), np.nan)
    for row, (t, total) in enumerate(zip(found.t, found.y.T, strict=True)):
        reached[row] = exponents(t, total)
    return reached
