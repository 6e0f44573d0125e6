"""Note 3: must the two populations be of equal size, and can either do without the other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import plots
from ..analysis import Populations, populations
from ..experiments import Experiment
from ..plots._populations import NEGATIVE
from ..plots._style import BLUE, GRAY, GREEN, finish, new_figure
from ..stimuli import NLGP
from ..trajectory import Trajectory
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread
from .notes_populations import ERF, GAIN, SITES, at_gain, hidden, network_of, task_of, training
from .notes_populations import experiments as population_experiments

BOTH, LOCALIZED, OSCILLATORY, STARTS = "both", "only localized", "only oscillatory", "starts"
# On average over x and −x a neuron with a negative bias says −1 to 0, one with a positive 0 to 1.
LABELS = {LOCALIZED: (-1.0, 0.0), OSCILLATORY: (0.0, 1.0)}
SLOW, FAST = (
    5,
    12,
)  # cycles: first fields of the one kind have no waves above, those of the other none below
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
POSITIVE = ("mostly positive", "all positive")


def starts(scale: FigureScale) -> dict[str, np.ndarray]:
    """First fields of one norm by name, (start, neuron, site): shares of slow ones, positive."""
    rng, size = np.random.default_rng(0), hidden(scale)
    fields_by_name = {}
    for share in at(scale, paper=SHARES, quick=SHARES[::2], tiny=SHARES[::4]):
        waves = np.fft.rfft(rng.normal(size=(size, SITES)), axis=1)
        frequency = np.arange(waves.shape[1])
        slow, fast = (
            np.fft.irfft(waves * keep, SITES) for keep in (frequency <= SLOW, frequency >= FAST)
        )
        fields_by_name[f"{100 * share:.0f} % slow"] = np.where(
            np.arange(size)[:, None] < share * size, slow, fast
        )[None]
    several = (at(scale, paper=3, quick=1, tiny=1), size, SITES)
    fields_by_name[POSITIVE[0]] = 1 + rng.normal(size=several)  # five weights in six
    fields_by_name[POSITIVE[1]] = np.abs(rng.normal(size=several))
    norm = np.sqrt(2 * SITES / (SITES + size))
    return {
        name: norm * fields / np.linalg.norm(fields, axis=2, keepdims=True)
        for name, fields in fields_by_name.items()
    }


def start_names(scale: FigureScale) -> list[str]:
    """The start of every member."""
    return [name for name, fields in starts(scale).items() for _ in fields]


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Committees as in notes/populations, two with other labels, one started from other fields."""
    method = training(
        scale, members=at(scale, paper=3, quick=1, tiny=4)
    )  # tiny: as many as have starts of their own
    alone = {
        name: Experiment(task_of(NLGP, labels=labels, gain=GAIN), network_of(scale), method)
        for name, labels in LABELS.items()
    }
    given = np.round(np.concatenate(list(starts(scale).values())), 5)
    other = training(scale, members=len(given))
    started = Experiment(task_of(NLGP, gain=GAIN), network_of(scale), other, initial=given)
    return {BOTH: population_experiments(scale)[ERF], **alone, STARTS: started}


def runs_of(results: Results) -> dict[str, Trajectory]:
    """By name; of those that come from notes/populations the members at its gain."""
    return {**results.runs, BOTH: at_gain(results[BOTH], GAIN, results.scale)}


def floor(share: Any) -> Any:
    """Least loss for labels ±1 of a committee of odd neurons, with a share of negative biases.

    On average over x and −x a neuron with a negative bias says something between −1 and 0, one with
    a positive bias between 0 and 1, so that the first class gets −f at least and the second 1 − f
    at most.
    """
    return (np.square(share) + np.square(1 - share)) / 2


def ranked(run: Trajectory, which: np.ndarray, scale: FigureScale) -> np.ndarray:
    """How often the second class excites neurons more than the first: P(ŷ(X₁) > ŷ(X₀)), (member,).

    Args:
        run: Committees with biases.
        which: Which of their neurons have a vote, (member, neuron).
        scale: Tells the number of samples.
    """
    import jax
    from scipy.special import erf

    num = at(scale, paper=4000, quick=2000, tiny=200)
    samples = [
        np.asarray(stimulus.sample(jax.random.key(place), num))
        for place, stimulus in enumerate(task_of(NLGP, gain=GAIN).stimuli)
    ]
    probabilities = []
    for fields, bias, use in zip(run.final, run.biases[:, -1], which, strict=True):
        if not use.any():
            probabilities.append(np.nan)
            continue
        first, second = (
            np.mean(erf((x @ fields[use].T + bias[use]) / np.sqrt(2)), axis=1) for x in samples
        )
        order = np.sort(first)
        below = np.searchsorted(order, second, "left") + np.searchsorted(order, second, "right")
        probabilities.append(below.mean() / 2 / num)
    return np.array(probabilities)


def negative(result: Populations) -> np.ndarray:
    """Share of negative biases, (member,)."""
    return (result.bias < 0).mean(axis=1)


def accuracies(run: Trajectory) -> np.ndarray:
    """At the end, in percent."""
    return 100 * np.asarray(run.series["accuracy"][:, -1], float).reshape(run.num_members)


def draw(results: Results) -> Any:
    """Committees with one population; what each is worth; where unbalanced starts lead."""
    figure: Any = new_figure(11, 8)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.2, 1))
    runs, scale = runs_of(results), results.scale
    started, names = runs[STARTS], start_names(scale)
    unbalanced = [name for name in names if name.endswith("slow")][-2:][0]
    shown = {
        "only localized: labels −1 and 0": (runs[LOCALIZED], 0),
        "only oscillatory: labels 0 and 1": (runs[OSCILLATORY], 0),
        f"unbalanced: {unbalanced} at the start": (started, names.index(unbalanced)),
    }
    for group, (title, (run, member)) in zip(
        top.subfigures(1, 3, wspace=0.02), shown.items(), strict=True
    ):
        plots.populations(run, member, ax=group.subplots(1, 2, width_ratios=(2.2, 1)))
        group.suptitle(title, fontsize=10)
    worth, shares, losses = bottom.subplots(1, 3)
    _draw_worth(worth, values_of(results))
    _draw_starts(shares, losses, started, names)
    return figure


def _draw_worth(ax: Any, worth: Mapping[str, np.ndarray]) -> None:

    colors = (GRAY, NEGATIVE, BLUE, NEGATIVE, BLUE)
    for place, (values, color) in enumerate(zip(worth.values(), colors, strict=True)):
        ax.barh(-place, values.mean() - 0.5, left=0.5, color=color, alpha=0.35, lw=0)
        ax.plot(values, np.full(len(values), -place), "o", ms=4, mew=0, color=color)
    ax.set_yticks(-np.arange(len(worth)), list(worth))
    title = "either population tells the classes apart"
    finish(ax, title, xlim=(0.5, 1), xlabel="P(ŷ(X₁) > ŷ(X₀))")


def _draw_starts(left: Any, right: Any, run: Trajectory, names: Sequence[str]) -> None:

    result = populations(run)
    share, loss = negative(result), np.asarray(run.series["loss"][:, -1], float)
    slow = np.array([name.endswith("slow") for name in names])
    at_start = np.array(
        [float(name.split("%")[0]) / 100 for name in names if name.endswith("slow")]
    )
    kinds = {kind: share[[name == kind for name in names]] for kind in POSITIVE}
    left.plot([0, 1], [0, 1], color=GRAY, lw=0.8, ls=":")
    left.plot(at_start, share[slow], "o-", color=NEGATIVE, ms=5)
    for (kind, values), marker in zip(kinds.items(), ("^", "s"), strict=True):
        style = {"color": GREEN, "ms": 5, "mfc": "none", "label": f"start {kind}"}
        left.plot(np.full(len(values), 1.15), values, marker, **style)
    labels = {"xlabel": "share of slow fields at the start", "xlim": (-0.03, 1.2)}
    labels |= {"ylabel": "share of negative biases at the end", "ylim": (-0.03, 1.03)}
    legend = {"loc": "lower right"}
    finish(left, "where unbalanced starts lead", legend=legend, **labels)
    grid = np.linspace(0, 1, 101)
    right.plot(grid, floor(grid), color="black", lw=1, label="none can have less")
    right.plot(share, loss, "o", color=NEGATIVE, ms=5, label="at the end of training")
    labels = {"xlabel": "share of negative biases", "ylabel": "loss, labels ±1"}
    finish(right, "ours: equal sizes are best", legend=legend, ylim=(0, 1), **labels)


def values_of(results: Results) -> dict[str, np.ndarray]:
    """P(ŷ(X₁) > ŷ(X₀)) of committees with both populations, of their parts, and with one."""
    runs = runs_of(results)
    both = runs[BOTH]
    bias = both.biases[:, -1]
    parts = {
        "both": (both, np.isfinite(bias)),
        "both, its negative biases": (both, bias < 0),
        "both, its positive biases": (both, bias > 0),
        **{name: (runs[name], np.isfinite(runs[name].biases[:, -1])) for name in LABELS},
    }
    return results.once(
        "ranked",
        lambda: {name: ranked(run, which, results.scale) for name, (run, which) in parts.items()},
    )


def questions(results: Results) -> Sequence[Question]:
    """What note 3 asks about balance and ablation, and what note 1 says of positive starts."""
    runs, scale = runs_of(results), results.scale
    sorted_by_name = {name: populations(run) for name, run in runs.items()}
    return [
        _equal(sorted_by_name, runs),
        _alone(sorted_by_name, runs, values_of(results)),
        _unbalanced(sorted_by_name, runs, scale),
        _positive(sorted_by_name, scale),
    ]


def _equal(sorted_by_name: Mapping[str, Populations], runs: Mapping[str, Trajectory]) -> Question:
    share, loss = (
        negative(sorted_by_name[STARTS]),
        np.asarray(runs[STARTS].series["loss"][:, -1], float),
    )
    best = share[loss.argmin()]
    low, high = (100 * negative(sorted_by_name[name]) for name in LABELS)
    decided = low.mean() > 95 and high.mean() < 5
    answer = (
        "No, the labels decide. On average over x and −x a neuron with a negative bias says "
        "something between −1 and 0, others between 0 and 1, so that a share f of negative "
        "biases leaves a loss of ½(f² + (1 − f)²) at least for labels ±1, least at one half. "
    )
    labels = (
        "Labels −1 and 0 make all biases negative, 0 and 1 all positive."
        if decided
        else "Other labels: see right."
    )
    return Question(
        "BAL1",
        "note 3, §2",
        "That there are two populations, and of equal size, seems arbitrary",
        answer + labels,
        f"loss is least ({printed(float(loss.min()), 3)}) at a share of {printed(float(best))}, "
        f"against a floor of {printed(float(floor(best)), 3)}; negative biases with labels −1 and "
        f"0: {spread(low, 0)} %, with 0 and 1: {spread(high, 0)} %",
        "final biases; loss on held-out samples",
    )


def _alone(
    sorted_by_name: Mapping[str, Populations],
    runs: Mapping[str, Trajectory],
    worth: Mapping[str, np.ndarray],
) -> Question:
    kinds = [
        100 * getattr(sorted_by_name[name], kind).mean(axis=1)
        for name, kind in ((LOCALIZED, "localized"), (OSCILLATORY, "oscillatory"))
    ]
    able = min(np.nanmin(worth[name]) for name in LABELS) > 0.8
    return Question(
        "BAL2",
        "note 3, §2",
        "Could either population solve the task on its own, just the localized or just the "
        "oscillatory neurons?",
        "Yes, both: trained alone, and as parts of a committee that has both. The oscillatory "
        "ones do better."
        if able and np.mean(worth[OSCILLATORY]) > np.mean(worth[LOCALIZED])
        else "Yes, both."
        if able
        else "Not here.",
        "P(ŷ(X₁) > ŷ(X₀)) "
        + "; ".join(f"{name}: {spread(values, 3)}" for name, values in worth.items())
        + f". Trained alone, {spread(kinds[0], 0)} % are localized and {spread(kinds[1], 0)} % "
        f"oscillatory, with accuracies of {spread(accuracies(runs[LOCALIZED]), 1)} and "
        f"{spread(accuracies(runs[OSCILLATORY]), 1)} % (both: {spread(accuracies(runs[BOTH]), 1)} "
        "%)",
        "fresh samples, mean response of the neurons named; alone by labels that need one "
        "population; accuracy at the middle of the labels",
    )


def _unbalanced(
    sorted_by_name: Mapping[str, Populations], runs: Mapping[str, Trajectory], scale: FigureScale
) -> Question:
    names = [name for name in start_names(scale) if name.endswith("slow")]
    share, run = negative(sorted_by_name[STARTS])[: len(names)], runs[STARTS]
    loss, right = np.asarray(run.series["loss"][:, -1], float), accuracies(run)
    ranks = ranked(run, np.isfinite(run.biases[:, -1]), scale)
    rows = (
        f"{name}: {100 * f:.0f} % negative, loss {cost:.3f}, accuracy {part:.0f} %, P {rank:.3f}"
        for name, f, cost, part, rank in zip(names, share, loss, right, ranks, strict=False)
    )
    both = share.min() > 0.02 and share.max() < 0.98
    return Question(
        "BAL3",
        "note 3, §2",
        "What do unbalanced populations do?",
        ("Both populations appear even where all first fields are of one kind. " if both else "")
        + "Unbalanced committees rank stimuli almost as well, but their outputs lie off the "
        "middle of the labels, which costs loss and accuracy.",
        "; ".join(rows),
        "first fields without waves above five cycles (slow) or below twelve, in several shares",
    )


def _positive(sorted_by_name: Mapping[str, Populations], scale: FigureScale) -> Question:
    names = np.array(start_names(scale))
    local = 100 * sorted_by_name[STARTS].localized.mean(axis=1)
    mostly, every = (local[names == kind] for kind in POSITIVE)
    slow = local[names == "100 % slow"]
    usual = 100 * sorted_by_name[BOTH].localized.mean(axis=1)
    positive = np.concatenate([mostly, every])
    gain = positive.mean() - usual.mean()
    errors = [counts.std(ddof=1) / np.sqrt(len(counts)) for counts in (positive, usual)]
    clear = gain > 2 * float(np.hypot(errors[0], errors[1]))
    return Question(
        "BAL4",
        "note 1, §3",
        "First fields of mostly positive weights give mostly localized neurons",
        (
            "Somewhat more of them. "
            if clear
            else "Hardly more than other first fields do, under these settings. "
        )
        + "Positive fields have more variance under the longer lengthscale, so that most biases "
        "start to fall (POP5); but the mean output must come out right, which turns others "
        "positive. Slow first fields do more.",
        f"localized: {spread(mostly, 0)} % from mostly positive, {spread(every, 0)} % from all "
        f"positive, {spread(slow, 0)} % from slow fields, {spread(usual, 0)} % from fields of "
        "either sign",
        f"{len(mostly)} committees each of positive starts, one of slow ones, {len(usual)} of the "
        "last",
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    method: Any = experiments(scale)[STARTS].method
    return (
        f"As notes/populations: N = {SITES}, ξ = (1, 2), gain {GAIN:g}, K = {hidden(scale)}, "
        f"erf(h/√2), trained biases, learning rate {method.learning_rate:g}, {method.steps:,} "
        f"steps, estimator orbit with {method.batch} samples per step. Labels ±1 unless said."
    )


FIGURE = PaperFigure(
    name="notes/balance",
    title="Note 3: unbalanced populations, and either alone",
    caption=(
        "Committees of localized neurons only and of oscillatory neurons only, which labels of "
        "one sign bring about, and one of unequal parts. Below: how often each tells a draw of "
        "one class from one of the other, alone and as part of a committee with both; the share "
        "of negative biases that unbalanced starts lead to; and, ours, the loss that a share of "
        "negative biases cannot go below."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
