"""Gaussian and elliptical data: the response is linear, the steady states are sinusoids, and the flow picks one.

For an elliptical law the gated mean is f(w) = m₁ Σw/√(wᵀΣw) without approximation, so that the flow of one ReLU
neuron is solved mode by mode. Nothing in it localizes: every steady state is one plane wave, and only the wave with
the smallest ratio of the two classes' spectra is stable (paper §3.3, open in the notes).
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Choice, declare
from ...errors import Said, refuse, show
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
    not_symmetric,
    require,
    swept,
)

GAUSSIAN_SLOPE = 1 / math.sqrt(2 * math.pi)

# An eigenvalue below this fraction of the largest is rounding (or was cut from an indefinite kernel): no mode.
SMALLEST_MODE = 1e-12

# Rounding of an eigenvalue, in units of the largest, with room to spare: two ratios nearer than it are equal.
ROUNDING = 1e-14


class LinearNeuron(Response):
    """f(w) = m₁ Σw/√(wᵀΣw), and f(0) = 0."""

    covariance: Covariance
    slope: jax.Array  # m₁

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response at a field."""
        seen = self.covariance(w)
        square = jnp.vdot(w, seen)
        # Two choices, so that a derivative at w = 0 is finite as well.
        some = square > 0
        root = jnp.sqrt(jnp.where(some, square, 1.0))
        return jnp.where(some, self.slope / root, 0.0) * seen


class LinearResponse(NeuronTheory):
    """The response of one ReLU neuron to elliptical data, f(w) = m₁ Σw/√(wᵀΣw), m₁ = E|X₁|/(2σ): exact.

    It covers the Gaussian, Student's t, shells and every other radius. With `slope="gaussian"` it covers every
    sign-symmetric stimulus through its covariance alone: what second-order structure predicts. (The paper's eq. 11
    lacks the ½ of m₁ = C/2, C = E|X₁|/σ.)

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
        help="exact: of the law, which must be elliptical; gaussian: of any law as if it were Gaussian",
    )

    def slope_of(self, stimulus: Stimulus) -> float:
        """m₁ = E|S|/(2s), the same for every direction.

        Args:
            stimulus: One class, sign symmetric.

        Raises:
            InputError: When the law is not elliptical, or has a mean.
        """
        self.covers_class(stimulus).require()
        slope = GAUSSIAN_SLOPE if self.slope == "gaussian" else stimulus.linear_slope()
        assert slope is not None, "see covers_class"
        return slope

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Elliptical laws without a mean; with the Gaussian's slope all sign-symmetric ones."""
        reason = swept("LinearResponse", stimulus) or not_symmetric("LinearResponse", [stimulus])
        if reason:
            return not_covered(reason)
        if stimulus.gaussian:
            return EXACT
        if self.slope == "gaussian":
            return APPROXIMATE
        if not stimulus.elliptical or stimulus.marginal() is None:
            return not_covered(
                f"A stimulus for LinearResponse must be elliptical, got {show(stimulus)}, which is not. "
                "Use `EffectiveFlow`; or `stimulus.gaussian_clone()` or LinearResponse(slope='gaussian') "
                "for what the covariance alone predicts."
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
    """∂f/∂w = (m₁/s)(Σ − Σw wᵀΣ/s²): symmetric, and zero along w.

    Args:
        slope: m₁.
        covariance: Σ, (size, size).
        w: A field other than zero, (size,).

    Returns:
        (size, size).
    """
    seen = covariance @ w
    square = float(w @ seen)
    return slope / math.sqrt(square) * (covariance - np.outer(seen, seen) / square)


@dataclasses.dataclass(frozen=True)
class Pull:
    """What a task with a single positive label amounts to: −∇L/p = 2y f(w) − (Σ + rest + ridge) w.

    With two classes the other label may be negative, which adds a push −2 against (p₀/p) f₀(w).
    """

    stimulus: Stimulus
    prior: float  # p, of that class
    label: float  # y
    rest: np.ndarray  # row of the other classes' covariances, Σ p_c Σ_c/p
    ridge: float  # 2 λ₂/p
    other: Stimulus | None = None  # the class with a negative label
    against: float = 0.0  # −y₀


def check_waves(name: str, task: Discrimination) -> None:
    """Refuse a task of one ReLU neuron whose flow does not leave plane waves apart."""
    require(not_a_neuron(name, task, SingleNeuron()))
    if task.l1 != 0:
        refuse(
            f"`l1` for {name}", task.l1, "zero", "That penalty mixes all frequencies; use `solve`."
        )
    for stimulus in task.stimuli:
        if not stimulus.translation_invariant:
            got = Said(f"{stimulus!r}, which is not")
            refuse(f"Every stimulus for {name}", got, "translation invariant", "Use `solve`.")


def pull_of(name: str, task: Discrimination, negative: bool = False) -> Pull:
    """Read a task of one ReLU neuron as a pull toward one class; refuse the others.

    Args:
        name: What needs it, for messages.
        task: Translation-invariant, sign-symmetric classes; one label positive and the others zero.
        negative: Whether, of two classes without a penalty, the other label may be negative. (Two positive labels
            balance in mixtures of waves, and so do three classes.)
    """
    check_waves(name, task)
    labels, priors = task.targets()[:, 0], task.priors
    marked = [c for c, label in enumerate(labels) if label > 0]
    pushing = [c for c, label in enumerate(labels) if label < 0]
    if len(marked) != 1 or (pushing and not (negative and len(labels) == 2 and task.l2 == 0)):
        got = Said(f"labels {', '.join(f'{label:g}' for label in labels)}")
        expected = "zero except for one positive"
        expected += (
            ", or of two classes without a penalty one positive and one negative"
            if negative
            else ""
        )
        refuse(
            f"The labels for {name}",
            got,
            expected,
            "Two classes have labels (0, 1); other tasks: use `solve`.",
        )
    chosen = marked[0]
    rest = np.zeros(task.shape)
    for c, stimulus in enumerate(task.stimuli):
        if c != chosen:
            rest += priors[c] / priors[chosen] * stimulus.covariance()
    ridge = 2 * float(task.l2) / priors[chosen]
    pull = Pull(task.stimuli[chosen], priors[chosen], float(labels[chosen]), rest, ridge)
    if not pushing:
        return pull
    return dataclasses.replace(
        pull, other=task.stimuli[pushing[0]], against=-float(labels[pushing[0]])
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Modes:
    """The spectra behind all steady states of one task, each of the lattice's shape in the order of the FFT."""

    target: np.ndarray  # p λ₁
    total: np.ndarray  # p (λ₀ + λ₁)
    ratio: np.ndarray  # total/target − 1, ∞ where the labelled class has no power
    blur: np.ndarray  # how far rounding may move a ratio

    def same(self, index: tuple[int, ...]) -> np.ndarray:
        """Which modes have the ratio of this one, to rounding."""
        with np.errstate(invalid="ignore"):  # ∞ − ∞ where there is no mode
            return np.abs(self.ratio - self.ratio[index]) <= self.blur + self.blur[index]


@dataclasses.dataclass(frozen=True, eq=False)
class Sinusoid:
    """A steady state of the linear flow: one plane wave of any phase, w(x) = amplitude · cos(2πk·x/N + phase).

    Attributes:
        frequency: k, cycles around each axis; k and −k are one wave.
        ratio: r_k = λ₀/λ₁ of the two classes' spectra (times p₀/p₁).
        norm: |u_k| = 2 y m₁ √λ₁/(λ₀ + λ₁), the length of w; with a negative label −η of the other class
            2 (y m₁ √λ₁ − η m₀ √λ₀)/(λ₀ + λ₁).
        amplitude: Largest weight, the level of a flat field: norm/√N where the wave is real (flat, alternating), else
            norm √(2/N).
        loss: L = Σ p_c y_c² − ½ total |u_k|²; with labels 0 and 1 of two equal classes ½ − m₁²/(1 + r_k).
        alike: Other frequencies of the same ratio. Steady states then include mixtures, of which only
            Σ λ₁ u² is fixed.
        growth_rates: Rate at which each mode j grows on this state under ẇ = −∇L, p λ₁ⱼ(r_k − r_j) · stretch, of the
            lattice's shape in the order of the FFT. The wave's own entry is zero, its phase; its size relaxes at
            `relaxation`.
        relaxation: Rate at which the size of the wave returns, −p (λ₀ + λ₁).
        stable: Whether no mode grows.
        stretch: 1; with a negative label 1 + 2η m₀/(√λ₀ |u_k|), by which all other modes grow and shrink faster.
    """

    shape: tuple[int, ...]
    frequency: tuple[int, ...]
    ratio: float
    norm: float
    loss: float
    modes: Modes = dataclasses.field(repr=False)
    stretch: float = dataclasses.field(default=1.0, repr=False)

    @property
    def amplitude(self) -> float:
        """Largest weight of the field."""
        size = math.prod(self.shape)
        return self.norm * math.sqrt((1 if _is_real(self.frequency, self.shape) else 2) / size)

    @property
    def growth_rates(self) -> np.ndarray:
        """Growth rate of every mode on this state."""
        rates = self.modes.target * (1 + self.ratio) - self.modes.total
        same = self.modes.same(self.frequency)
        return np.where(same, 0.0, np.where(same, 1.0, rates) * self.stretch)

    @property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Other frequencies of the same ratio."""
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
        """Rate at which the wave returns to its size."""
        return -float(self.modes.total[self.frequency])

    @property
    def stable(self) -> bool:
        """Whether no mode grows: its ratio is the smallest."""
        slack = self.modes.blur + self.modes.blur[self.frequency]
        return bool((self.modes.ratio >= self.ratio - slack).all())

    def field(self, phase: float = 0.0) -> np.ndarray:
        """The field, of the lattice's shape; up to sign and phase, which are free.

        A real wave (flat, alternating) has no phase, and is left as it is.
        """
        return self.amplitude * plane_wave(self.frequency, self.shape, phase)


def sinusoids(task: Discrimination, theory: LinearResponse | None = None) -> list[Sinusoid]:
    """Every steady state of one ReLU neuron on elliptical data: a sinusoid a frequency, the most stable first.

    Args:
        task: Elliptical, translation-invariant classes, one of them with a positive label and the others with zero; or
            two, of which the other has a negative label, such as labels="signs".
        theory: `LinearResponse(slope="gaussian")` to take only the covariances of other laws.

    Returns:
        One `Sinusoid` a frequency at which the labelled class has power, sorted by ratio; the first is stable and the
        global minimum of the loss. Frequencies whose ratio is the same are named in `alike`. With a negative label a
        frequency at which the push outweighs the pull has none, and there may be none at all: the field then dies.

    Raises:
        InputError: When the task has no such closed form.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Gaussian(40, xi=1), lf.stimuli.Gaussian(40, xi=2))
        >>> [(wave.frequency, round(wave.ratio, 4), wave.stable) for wave in sinusoids(task)[:2]]
        [((0,), 0.5001, True), ((1,), 0.5094, False)]
    """
    theory = theory or LinearResponse()
    pull = pull_of("sinusoids", task, negative=True)
    slope, push = theory.slope_of(pull.stimulus), 0.0
    if pull.other is not None:
        push = pull.against * theory.slope_of(pull.other)
    modes = _modes(pull)
    constant = pull.prior * pull.label**2 + (1 - pull.prior) * pull.against**2
    found = []
    for index in np.ndindex(task.shape):
        if not (np.isfinite(modes.ratio[index]) and index == _half(index, task.shape)):
            continue
        ratio, power = float(modes.ratio[index]), float(modes.target[index])
        seen = math.sqrt(power / pull.prior)  # √λ₁
        other = math.sqrt(max(ratio, 0.0) * power / (1 - pull.prior)) if push else 0.0  # √λ₀
        toward = pull.prior * pull.label * slope * seen - (1 - pull.prior) * push * other
        if toward <= 0:
            continue
        norm = 2 * toward / float(modes.total[index])
        found.append(
            Sinusoid(
                shape=task.shape,
                frequency=_signed(index, task.shape),
                ratio=ratio,
                norm=norm,
                loss=constant - toward * norm,
                modes=modes,
                stretch=1 + (2 * push / (other * norm) if other else math.inf if push else 0.0),
            )
        )
    return sorted(found, key=lambda wave: (wave.ratio, sum(k * k for k in wave.frequency)))


def winning_mode(task: Discrimination, theory: LinearResponse | None = None) -> Sinusoid:
    """The one stable steady state: the sinusoid at which λ₀/λ₁ is smallest, and the global minimum of the loss.

    For squared-exponential kernels it is flat if ξ₁ > ξ₀ and alternates from site to site if ξ₁ < ξ₀. The next ratio
    is often close, so that low frequencies live long; look at `growth_rates` of the second of `sinusoids`. From
    ξ₁/N ≈ 1/8 on, the kink of the wrapped kernel gives the longer lengthscale a little power at high frequencies too,
    and one of those may have the smallest ratio: they outgrow the flat field at rates of 1e-8 to 1e-4, long after any
    experiment. `kernel="periodized"` has no kink.

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
    found = sinusoids(task, theory)
    if not found:
        got = Said("a negative label that outweighs the positive one at every frequency")
        refuse(
            "The task",
            got,
            "one in which some wave is pulled more than pushed",
            "Exchange the labels.",
        )
    return found[0]


def _modes(pull: Pull) -> Modes:
    target = np.maximum(spectrum(pull.stimulus.covariance()), 0)
    total = target + np.maximum(spectrum(pull.rest), 0) + pull.ridge
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(target > SMALLEST_MODE * target.max(), total / target - 1, np.inf)
        blur = ROUNDING * ((1 + ratio) * target.max() + total.max()) / target
    blur = np.where(np.isfinite(ratio), blur, 0.0)
    return Modes(pull.prior * target, pull.prior * total, ratio, blur)


def plane_waves(shape: tuple[int, ...]) -> dict[tuple[int, ...], list[int]]:
    """Every plane wave of a lattice by its frequency, and the one or two entries of the FFT (in C order) it is made of.

    Example:
        >>> plane_waves((4,))
        {(0,): [0], (1,): [1, 3], (2,): [2]}
    """
    found: dict[tuple[int, ...], list[int]] = {}
    for row, index in enumerate(np.ndindex(shape)):
        found.setdefault(_signed(_half(index, shape), shape), []).append(row)
    return found


def plane_wave(frequency: tuple[int, ...], shape: tuple[int, ...], phase: float) -> np.ndarray:
    """cos(2πk·x/N + phase) at every site; a real wave (flat, alternating) has no phase, and is left as it is."""
    turns = sum(k * x / n for k, x, n in zip(frequency, np.indices(shape), shape, strict=True))
    return np.cos(2 * np.pi * np.asarray(turns) + (0.0 if _is_real(frequency, shape) else phase))


def _half(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """One of k and −k, always the same: the one whose first component that can be told is below half a turn."""
    mirror = tuple(-k % n for k, n in zip(index, shape, strict=True))
    return min(index, mirror)


def _signed(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(k if 2 * k <= n else k - n for k, n in zip(index, shape, strict=True))


def _wrapped(frequency: int | tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    given = (frequency,) if isinstance(frequency, int) else tuple(frequency)
    if len(given) != len(shape):
        refuse(
            "`frequency`",
            frequency,
            f"{len(shape)} whole numbers",
            "Give the cycles around each axis.",
        )
    return tuple(k % n for k, n in zip(given, shape, strict=True))


def _is_real(frequency: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(2 * k % n == 0 for k, n in zip(frequency, shape, strict=True))
