"""Elliptical data: the response is linear, steady states are sinusoids, and the flow picks one.

For elliptical data the gated mean is f(w) = m₁ Σw/√(wᵀΣw) without approximation, so that the flow
of one ReLU neuron is solved mode by mode. Nothing localizes: every steady state is a plane wave,
and only the wave with the smallest ratio of the two classes' spectra is stable (paper §3.3).
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Choice, declare
from ...errors import InputError, show
from ...lattice import spectrum
from ...networks import SingleNeuron
from ...stimuli import Stimulus
from ...tasks import Discrimination
from ..base import (
    APPROXIMATE,
    EXACT,
    Covariance,
    Coverage,
    NeuronTheory,
    Response,
    covariance_of,
    not_a_neuron,
    not_covered,
    not_mse,
    not_single,
    not_symmetric,
    raise_if,
)

GAUSSIAN_SLOPE = 1 / math.sqrt(2 * math.pi)

# An eigenvalue below this fraction of the largest is rounding, or was cut from an indefinite
# kernel.
MIN_POWER = 1e-12
# Rounding of an eigenvalue relative to the largest, with room to spare: closer ratios count as
# equal.
EIGENVALUE_ROUNDING = 1e-14


class LinearNeuron(Response):
    """f(w) = m₁ Σw/√(wᵀΣw), and f(0) = 0."""

    covariance: Covariance
    slope: jax.Array  # m₁

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response at a field."""
        product = self.covariance(w)
        square = jnp.vdot(w, product)
        # Two choices, so that the derivative at w = 0 is finite too.
        nonzero = square > 0
        root = jnp.sqrt(jnp.where(nonzero, square, 1.0))
        return jnp.where(nonzero, self.slope / root, 0.0) * product


class LinearResponse(NeuronTheory):
    """One ReLU neuron on elliptical data: f(w) = m₁ Σw/√(wᵀΣw) with m₁ = E|X₁|/(2σ), exactly.

    It covers Gaussian, Student's t and all other elliptical stimuli. With `slope="gaussian"` it
    covers every sign-symmetric stimulus through its covariance alone: what second-order structure
    predicts. (The paper's eq. 11 lacks the ½ of m₁ = C/2, C = E|X₁|/σ.)

    Example:
        >>> import localfields as lf
        >>> theory = LinearResponse()
        >>> round(theory.slope_of(lf.stimuli.StudentT(40, nu=3)), 6)  # 1/π
        0.31831
    """

    slope: str = declare(
        Choice(("exact", "gaussian")),
        default="exact",
        symbol="m₁",
        help="exact: of elliptical data; gaussian: of any data, as if they were Gaussian",
    )

    def slope_of(self, stimulus: Stimulus) -> float:
        """m₁ = E|S|/(2s) of one class, the same for every direction."""
        self.covers_class(stimulus).require()
        slope = GAUSSIAN_SLOPE if self.slope == "gaussian" else stimulus.linear_slope()
        assert slope is not None, "see covers_class"
        return slope

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Elliptical classes without a mean; with the Gaussian's slope all sign-symmetric ones."""
        name = "LinearResponse"
        if reason := not_single(name, stimulus) or not_symmetric(name, [stimulus]):
            return not_covered(reason)
        if stimulus.gaussian:
            return EXACT
        if self.slope == "gaussian":
            return APPROXIMATE
        if not stimulus.elliptical or stimulus.marginal() is None:
            return not_covered(
                f"LinearResponse needs elliptical stimuli, but {show(stimulus)} is not. Use "
                "`EffectiveFlow`; or, for what the covariance alone predicts, "
                "`stimulus.gaussian_clone()` or LinearResponse(slope='gaussian')."
            )
        return EXACT

    def response(self, stimulus: Stimulus) -> Response:
        """The response of one class."""
        slope = self.slope_of(stimulus)
        with jax.enable_x64(True):
            covariance = covariance_of(
                np.asarray(stimulus.covariance(), np.float64), stimulus.shape
            )
            return LinearNeuron(covariance, jnp.asarray(slope, jnp.float64))


def response_jacobian(slope: float, covariance: np.ndarray, w: np.ndarray) -> np.ndarray:
    """∂f/∂w = (m₁/s)(Σ − Σw wᵀΣ/s²), (size, size): symmetric, and zero along w."""
    product = covariance @ w
    square = float(w @ product)
    return slope / math.sqrt(square) * (covariance - np.outer(product, product) / square)


@dataclasses.dataclass(frozen=True)
class PullingClass:
    """The class with a positive label, as the flow sees it: −∇L/p = 2y f(w) − (Σ + rest + ridge) w.

    With two classes the other label may be negative, which adds −2 against (p₀/p) f₀(w).
    """

    stimulus: Stimulus
    prior: float  # p
    label: float  # y
    rest: np.ndarray  # covariance row of the other classes, Σ p_c Σ_c/p
    ridge: float  # 2 λ₂/p
    other: Stimulus | None = None  # the class with a negative label
    against: float = 0.0  # −y₀


def check_waves(name: str, task: Discrimination) -> None:
    """Raise an InputError for a task of one ReLU neuron whose flow mixes plane waves."""
    raise_if(not_a_neuron(name, task, SingleNeuron()) or not_mse(name, task, l1=False))
    for stimulus in task.stimuli:
        if not stimulus.translation_invariant:
            raise InputError(
                f"{name} needs translation-invariant stimuli, but {show(stimulus)} is not. "
                "Use `solve`."
            )


def pulling_class(name: str, task: Discrimination, negative: bool = False) -> PullingClass:
    """The one class with a positive label of a translation-invariant task of one ReLU neuron.

    Args:
        name: What needs it, for messages.
        task: Sign-symmetric classes; one label is positive and the others are zero.
        negative: Whether, of two classes without a penalty, the other label may be negative.
            (Two positive labels balance in mixtures of waves, and so do three classes.)
    """
    check_waves(name, task)
    labels, priors = task.targets()[:, 0], task.priors
    positive = [c for c, label in enumerate(labels) if label > 0]
    pushing = [c for c, label in enumerate(labels) if label < 0]
    if len(positive) != 1 or (pushing and not (negative and len(labels) == 2 and task.l2 == 0)):
        exception = " Of two classes without a penalty the other may be negative." * negative
        raise InputError(
            f"{name} needs one positive label and zeros otherwise, got labels "
            f"{', '.join(f'{label:g}' for label in labels)}.{exception} Use `solve` instead."
        )
    chosen = positive[0]
    rest = np.zeros(task.shape)
    for c, stimulus in enumerate(task.stimuli):
        if c != chosen:
            rest += priors[c] / priors[chosen] * stimulus.covariance()
    ridge = 2 * float(task.l2) / priors[chosen]
    other, against = None, 0.0
    if pushing:
        other, against = task.stimuli[pushing[0]], -float(labels[pushing[0]])
    return PullingClass(
        task.stimuli[chosen], priors[chosen], float(labels[chosen]), rest, ridge, other, against
    )


@dataclasses.dataclass(frozen=True, eq=False)
class ModeSpectra:
    """The spectra behind all steady states of one task, of the lattice's shape in FFT order."""

    target: np.ndarray  # p λ₁
    total: np.ndarray  # p (λ₀ + λ₁)
    ratio: np.ndarray  # total/target − 1, ∞ where the labelled class has no power
    blur: np.ndarray  # how far rounding may move a ratio

    def same(self, index: tuple[int, ...]) -> np.ndarray:
        """Which modes have the ratio of this one, up to rounding."""
        with np.errstate(invalid="ignore"):  # ∞ − ∞ where there is no mode
            return np.abs(self.ratio - self.ratio[index]) <= self.blur + self.blur[index]


@dataclasses.dataclass(frozen=True, eq=False)
class Sinusoid:
    """A steady state of the linear flow: a plane wave, w(x) = amplitude · cos(2πk·x/N + phase)."""

    shape: tuple[int, ...]
    frequency: tuple[int, ...]  # k, cycles around each axis; k and −k are the same wave
    ratio: float  # r_k = λ₀/λ₁ of the two classes' spectra (times p₀/p₁)
    # ‖w‖ = 2 y m₁ √λ₁/(λ₀ + λ₁); with a negative label −η of the other class 2 (y m₁ √λ₁ − η m₀
    # √λ₀)/(λ₀ + λ₁)
    norm: float
    # L = Σ p_c y_c² − ½ total ‖w‖²; for two equal classes with labels 0 and 1 ½ − m₁²/(1 + r_k)
    loss: float
    modes: ModeSpectra = dataclasses.field(repr=False)
    # 1; with a negative label 1 + 2η m₀/(√λ₀ ‖w‖), a factor on all growth rates
    stretch: float = dataclasses.field(default=1.0, repr=False)

    @property
    def amplitude(self) -> float:
        """Largest weight; the level of a flat field."""
        size = math.prod(self.shape)
        return self.norm * math.sqrt((1 if _is_real(self.frequency, self.shape) else 2) / size)

    @property
    def growth_rates(self) -> np.ndarray:
        """Rate p λ₁ⱼ(r_k − rⱼ) · stretch at which each mode j grows under ẇ = −∇L, in FFT order.

        The wave's own entry is zero, its phase; its size relaxes at `relaxation`.
        """
        rates = self.modes.target * (1 + self.ratio) - self.modes.total
        same = self.modes.same(self.frequency)
        return np.where(same, 0.0, np.where(same, 1.0, rates) * self.stretch)

    @property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Other frequencies of the same ratio; mixtures with them are steady states too."""
        others = {
            _half(tuple(map(int, other)), self.shape)
            for other in np.argwhere(self.modes.same(self.frequency))
        }
        others.discard(_half(_wrapped(self.frequency, self.shape), self.shape))
        return tuple(_signed(other, self.shape) for other in sorted(others))

    def rate(self, frequency: int | tuple[int, ...]) -> float:
        """Growth rate of one other mode."""
        return float(self.growth_rates[_wrapped(frequency, self.shape)])

    @property
    def relaxation(self) -> float:
        """Rate −p (λ₀ + λ₁) at which the wave returns to its size."""
        return -float(self.modes.total[self.frequency])

    @property
    def stable(self) -> bool:
        """Whether no mode grows: the ratio is the smallest."""
        slack = self.modes.blur + self.modes.blur[self.frequency]
        return bool((self.modes.ratio >= self.ratio - slack).all())

    def field(self, phase: float = 0.0) -> np.ndarray:
        """The field, of the lattice's shape; its sign and phase are free."""
        return self.amplitude * plane_wave(self.frequency, self.shape, phase)


def sinusoids(task: Discrimination, theory: LinearResponse | None = None) -> list[Sinusoid]:
    """Every steady state of one ReLU neuron on elliptical data, one per frequency, stable first.

    Args:
        task: Elliptical, translation-invariant classes, one of them with a positive label and the
            others with zero; or two, one of which has a negative label, such as labels="signs".
        theory: `LinearResponse(slope="gaussian")` to use only the covariances of other data.

    Returns:
        A `Sinusoid` per frequency at which the labelled class has power, sorted by ratio; the first
        is stable and the global minimum of the loss. With a negative label, frequencies at which
        the push outweighs the pull have none; if all do, the list is empty and the field decays.

    Raises:
        InputError: If the task has no such closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=2))
        >>> [(wave.frequency, round(wave.ratio, 4), wave.stable) for wave in sinusoids(task)[:2]]
        [((0,), 0.5001, True), ((1,), 0.5094, False)]
    """
    theory = theory or LinearResponse()
    pulling = pulling_class("sinusoids", task, negative=True)
    prior, slope, push = pulling.prior, theory.slope_of(pulling.stimulus), 0.0
    if pulling.other is not None:
        push = pulling.against * theory.slope_of(pulling.other)
    modes = _mode_spectra(pulling)
    constant = prior * pulling.label**2 + (1 - prior) * pulling.against**2
    waves = []
    for index in np.ndindex(task.shape):
        # k and −k are one wave; where the labelled class has no power, nothing sustains it.
        if not (np.isfinite(modes.ratio[index]) and index == _half(index, task.shape)):
            continue
        ratio, power = float(modes.ratio[index]), float(modes.target[index])
        root1 = math.sqrt(power / prior)  # √λ₁
        root0 = math.sqrt(max(ratio, 0.0) * power / (1 - prior)) if push else 0.0  # √λ₀
        toward = prior * pulling.label * slope * root1 - (1 - prior) * push * root0
        if toward <= 0:  # the other class pushes harder than this one pulls
            continue
        norm = 2 * toward / float(modes.total[index])
        waves.append(
            Sinusoid(
                shape=task.shape,
                frequency=_signed(index, task.shape),
                ratio=ratio,
                norm=norm,
                loss=constant - toward * norm,
                modes=modes,
                stretch=1 + (2 * push / (root0 * norm) if root0 else math.inf if push else 0.0),
            )
        )
    return sorted(waves, key=lambda wave: (wave.ratio, sum(k * k for k in wave.frequency)))


def winning_mode(task: Discrimination, theory: LinearResponse | None = None) -> Sinusoid:
    """The stable steady state: the sinusoid with the smallest λ₀/λ₁, the minimum of the loss.

    For squared-exponential kernels it is flat if ξ₁ > ξ₀ and alternates from site to site if
    ξ₁ < ξ₀. The next ratio is often close, so that low frequencies live long; see `growth_rates` of
    the second of `sinusoids`. From ξ₁/N ≈ 1/8 on, the kink of the wrapped kernel gives the longer
    lengthscale some power at high frequencies too, one of which may have the smallest ratio: it
    outgrows the flat field at rates of 1e-8 to 1e-4, long after any experiment.
    `kernel="periodized"` has no kink.

    Args:
        task: As for `sinusoids`.
        theory: As for `sinusoids`.

    Example:
        >>> import localfields as lf
        >>> shells = [lf.stimuli.EllipticalShell(40, xi=xi) for xi in (1, 3)]
        >>> wave = winning_mode(lf.Discrimination(*shells))
        >>> wave.frequency, round(wave.amplitude, 4)
        ((0,), 0.0413)
    """
    waves = sinusoids(task, theory)
    if not waves:
        raise InputError(
            "No wave survives: the negative label outweighs the positive one at every frequency. "
            "Exchange the labels."
        )
    return waves[0]


def _mode_spectra(pulling: PullingClass) -> ModeSpectra:
    target = np.maximum(spectrum(pulling.stimulus.covariance()), 0)
    total = target + np.maximum(spectrum(pulling.rest), 0) + pulling.ridge
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(target > MIN_POWER * target.max(), total / target - 1, np.inf)
        # First-order error of total/target if both have rounding errors of EIGENVALUE_ROUNDING.
        blur = EIGENVALUE_ROUNDING * ((1 + ratio) * target.max() + total.max()) / target
    blur = np.where(np.isfinite(ratio), blur, 0.0)
    return ModeSpectra(pulling.prior * target, pulling.prior * total, ratio, blur)


def plane_waves(shape: tuple[int, ...]) -> dict[tuple[int, ...], list[int]]:
    """Every plane wave of a lattice by frequency, with its one or two FFT entries in C order."""
    waves: dict[tuple[int, ...], list[int]] = {}
    for row, index in enumerate(np.ndindex(shape)):
        waves.setdefault(_signed(_half(index, shape), shape), []).append(row)
    return waves


def plane_wave(frequency: tuple[int, ...], shape: tuple[int, ...], phase: float) -> np.ndarray:
    """cos(2πk·x/N + phase) at every site; a real wave (flat, alternating) has no phase."""
    turns = sum(k * x / n for k, x, n in zip(frequency, np.indices(shape), shape, strict=True))
    return np.cos(2 * np.pi * np.asarray(turns) + (0.0 if _is_real(frequency, shape) else phase))


def _half(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """One of k and −k, always the same."""
    return min(index, tuple(-k % n for k, n in zip(index, shape, strict=True)))


def _signed(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(k if 2 * k <= n else k - n for k, n in zip(index, shape, strict=True))


def _wrapped(frequency: int | tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    cycles = (frequency,) if isinstance(frequency, int) else tuple(frequency)
    if len(cycles) != len(shape):
        raise InputError(
            f"`frequency` must have one whole number per axis, got {show(frequency)} for a lattice "
            f"with {len(shape)} axes."
        )
    return tuple(k % n for k, n in zip(cycles, shape, strict=True))


def _is_real(frequency: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(2 * k % n == 0 for k, n in zip(frequency, shape, strict=True))
