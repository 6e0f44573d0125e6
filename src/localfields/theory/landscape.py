"""`landscape`: the broad and the localized steady state of a task, and which of them is better.

L(w) = const − E|h| terms + ½ wᵀΣ̄w depends on the length of w in a known way. Minimized over it,
with one class of probability p and label y to respond to, it leaves a question about the shape:

    L = p y² − ½ p² y² R,    R = (E|h|/s)² · s²/(wᵀΣ̄w),    s² = wᵀΣ₁w,

½ − R/8 for two equal classes with labels 0 and 1. The first factor of R is 2/π for anything that
looks Gaussian and (E|X|)² for a single site; the second is largest for the flat field if the
labelled class is the smoother one. A field localizes if it gains more of the first than it loses of
the second.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from .._spec import Count
from ..errors import InputError, show
from ..networks import SingleNeuron
from ..tasks import Discrimination
from ..trajectory import Trajectory, inverse_participation_ratio, localized_from
from .base import NeuronFlow, NeuronTheory
from .choose import PerClass
from .predict import (
    LABEL_WIDTH,
    PREDICT_STARTS,
    TOLERANCE,
    UNTIL,
    PredictionRow,
    check_single_task,
)
from .responses.cluster import ClusterFlow
from .responses.effective import EffectiveResponse
from .responses.hypercube import fixed_point_iteration
from .solve import check_solvable, solve

MAX_STEPS = 4000  # of the iteration, which slows down near a transition
REST = 1e-6  # a flow that passes a saddle moves by less than `predict` calls rest
SAME_LOSS = 1e-6  # difference below which neither state is called better


@dataclasses.dataclass(frozen=True)
class SteadyState:
    """A field that learning leaves as it is.

    Args:
        field: The field, of the lattice's shape.
        loss: Its population loss.
        ipr: Its inverse participation ratio.
        shape_factor: (E|h|/s)² of the labelled class; 2/π if h is normal, nan with several classes.
        spectral_factor: s²/(wᵀΣ̄w), likewise.
        converged: Whether the iteration came to rest.
    """

    field: np.ndarray
    loss: float
    ipr: float
    shape_factor: float
    spectral_factor: float
    converged: bool

    @property
    def localized(self) -> bool:
        """Whether it is a bump."""
        return self.ipr > localized_from(self.field.size)


@dataclasses.dataclass(frozen=True)
class Landscape:
    """Steady states of a task. Printed, it is a report; `rows` has the same line by line.

    Args:
        task: The task.
        theory: Name of the theory that was followed.
        exact: Whether that theory is exact for this task.
        flat: The steady state reached from the constant field.
        bump: The steady state reached from a single site; not a bump if there is none.
        lower: Which has the lower loss: `bump`, `flat`, or `equal` if it is the same.
        reached: Where learning from small random weights ends: `bump`, `flat` for anything that is
            not localized, or `both`.
        localized_starts: Fraction of the starts that end localized.
        flow: The trajectories of all starts.
    """

    task: Discrimination = dataclasses.field(repr=False)
    theory: str
    exact: bool
    flat: SteadyState
    bump: SteadyState
    lower: str
    reached: str
    localized_starts: float
    flow: Trajectory = dataclasses.field(repr=False)

    def rows(self) -> list[PredictionRow]:
        """The landscape line by line."""
        lower = {
            "bump": "the bump",
            "flat": "the flat field",
            "equal": "neither: both have the same loss",
        }[self.lower]
        reached = {
            "bump": "the bump",
            "flat": "a broad field",
            "both": f"either: {100 * self.localized_starts:.0f} % of the starts end localized",
        }[self.reached]
        if self.trapped:
            reached += ", a trap: the other state has the lower loss"
        return [
            PredictionRow("theory", self.theory, "theory", self.theory),
            PredictionRow("flat", self.flat, "flat field", _describe(self.flat)),
            PredictionRow("bump", self.bump, "from one site", _describe(self.bump)),
            PredictionRow("lower", self.lower, "lower loss", lower),
            PredictionRow("reached", self.reached, "learning reaches", reached),
        ]

    @property
    def trapped(self) -> bool:
        """Whether learning from small weights ends in the state with the higher loss."""
        return {self.lower, self.reached} == {"bump", "flat"}

    def __str__(self) -> str:
        """The report."""
        return "\n".join(f"{row.label:<{LABEL_WIDTH}} {row.text}" for row in self.rows())


def _describe(state: SteadyState) -> str:
    text = f"loss {state.loss:.4f}, IPR {state.ipr:.3g}"
    if not math.isnan(state.shape_factor):
        text += f"; shape {state.shape_factor:.4g} × spectrum {state.spectral_factor:.4g}"
    if not state.converged:
        text += " (not at rest yet)"
    return text


def landscape(
    task: Discrimination,
    theory: NeuronTheory | None = None,
    *,
    starts: int = PREDICT_STARTS,
    seed: int = 0,
) -> Landscape:
    """Which of two fields is better, a bump or a flat one, and which one does learning find?

    The two questions may have different answers. Whether a bump is better depends on the mean
    absolute value of a site, E|X|; whether small random weights find it depends on the stability of
    the broad field on their way, where the kurtosis matters.

    Args:
        task: Classes, labels and loss (mean squared error); no swept numbers.
        theory: A theory of one neuron whose response is a gradient; by default an exact one, else
            `ClusterFlow()`.
        starts: Number of random starts.
        seed: Seed of the random starts.

    Raises:
        InputError: If `task` is not a single Discrimination that the theory covers.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Kur((40,), xi=xi, k=10) for xi in (0.3, 0.7)))
        >>> states = lf.theory.landscape(task, starts=4)
        >>> states.lower, round(states.flat.loss, 4), round(states.bump.loss, 4)
        ('bump', 0.4112, 0.4072)
    """
    check_single_task(task, "landscape")
    network, starts = SingleNeuron(), Count(high=10**7).check("starts", starts)
    if theory is None:
        theory = PerClass() if PerClass().covers(task, network).exact else ClusterFlow()
    check_solvable(task, theory, network, UNTIL, REST, TOLERANCE, "auto")
    coverage = theory.covers(task, network)
    coverage.require()
    flow = theory.flow(task, network)
    if not isinstance(flow, NeuronFlow):
        raise InputError(f"landscape needs a theory of one neuron, got {show(theory)}.")
    if any(isinstance(response, EffectiveResponse) for response in flow.responses):
        raise InputError(
            "The effective flow is not a gradient, so that its steady states have no loss. "
            "Use ClusterFlow()."
        )
    flat = _steady_state(task, flow, np.ones(task.size))
    bump = _steady_state(task, flow, np.eye(task.size)[0])
    lower = "flat" if flat.loss < bump.loss else "bump"
    if abs(flat.loss - bump.loss) < SAME_LOSS:
        lower = "equal"
    learned = solve(
        task,
        theory.coarse(),
        members=starts,
        seed=seed,
        until=UNTIL,
        stop_tol=REST,
        tolerance=TOLERANCE,
    )
    localized = float(np.mean(learned.ipr[:, -1, 0] > localized_from(task.size)))
    reached = {0.0: "flat", 1.0: "bump"}.get(localized, "both")
    return Landscape(
        task, theory.title(task), coverage.exact, flat, bump, lower, reached, localized, learned
    )


def _steady_state(task: Discrimination, flow: NeuronFlow, w: np.ndarray) -> SteadyState:
    iteration = fixed_point_iteration(flow, w, max_steps=MAX_STEPS)
    w, shape, spectral = iteration.fields[-1], math.nan, math.nan
    pulled = np.flatnonzero(task.targets()[:, 0])
    if len(pulled) == 1 and np.any(w):
        own = float(w @ task.stimuli[pulled[0]].covariance_product(w[None])[0])
        with jax.enable_x64(True):
            total = float(w @ np.asarray(flow.covariance(jnp.asarray(w))))
            size = 2 * float(w @ np.asarray(flow.responses[0](jnp.asarray(w))))  # E|h| = 2⟨w, f⟩
        shape, spectral = size**2 / own, own / total
    return SteadyState(
        field=w.reshape(task.shape),
        loss=float(iteration.losses[-1]),
        ipr=float(inverse_participation_ratio(w, 1)),
        shape_factor=shape,
        spectral_factor=spectral,
        converged=iteration.converged,
    )
