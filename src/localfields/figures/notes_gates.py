"""Note 1, §5.1: which gates win, by the loss they end with or by how fast they learn, and what a neuron does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..experiments import Experiment, Solution
from ..networks import SingleNeuron
from ..networks.gates import (
    Block,
    Bump,
    Directions,
    Exclusive,
    Flat,
    Gates,
    MexicanHat,
    RandomDirections,
    Redundant,
)
from ..networks.gates import Wave as WaveGate
from ..plots._style import BLUE, GRAY, GREEN, ORANGE, SMALL, make_small, new_figure
from ..stimuli import NLGP, Ising, Stimulus
from ..tasks import Discrimination
from ..theory import ExactIsing, GatedSolution, LinearResponse, gated_solution
from .base import PaperFigure, Question, Results, Scale, at, printed, spread

COUPLINGS, GAIN = (0.3, 0.7), 1.0
SPINS, BETWEEN, GAUSSIAN = "spins", "between", "Gaussian"
LAWS = {SPINS: "spins (Ising)", BETWEEN: f"NLGP, gain {GAIN:g}", GAUSSIAN: "Gaussian"}
SINGLE: dict[str, Gates] = {
    "bump": Bump(),
    "majority of three": Block(length=3),
    "two alike": Block(length=2),
    "Mexican hat": MexicanHat(width=1.5),
    "flat": Flat(),
    "wave": WaveGate(),
    "random": RandomDirections(),
}
TIMES = np.geomspace(0.02, 20, 120)  # of the closed forms


def sites(scale: Scale) -> int:
    """On the ring; few at the smallest scale, where sums over states are then possible."""
    return at(scale, paper=40, quick=40, tiny=12)


def task_of(law: str, scale: Scale) -> Discrimination:
    """Spins, or other laws with their covariances."""
    spins = [Ising((sites(scale),), coupling=j) for j in COUPLINGS]
    if law == BETWEEN:
        classes: list[Stimulus] = [
            NLGP.with_correlation(one.covariance(), gain=GAIN) for one in spins
        ]
    else:
        classes = [one if law == SPINS else one.gaussian_clone() for one in spins]
    return Discrimination(*classes)


def num_starts(scale: Scale) -> int:
    """Members of the neuron's ensembles."""
    return at(scale, paper=3, quick=2, tiny=2)


def experiments(scale: Scale) -> Mapping[str, Experiment]:
    """One ReLU neuron, whose gates are not fixed, on spins and on their Gaussian clone."""
    theories = {SPINS: (ExactIsing(), 100.0), GAUSSIAN: (LinearResponse(), 10_000.0)}
    num = at(scale, paper=10, quick=6, tiny=3)
    return {
        law: Experiment(
            task_of(law, scale),
            SingleNeuron(),
            Solution(
                theory,
                times=np.append(0, np.geomspace(1, end, num)).round(3),
                members=num_starts(scale),
                tolerance=1e-6,
            ),
        )
        for law, (theory, end) in theories.items()
    }


def solved(results: Results, law: str, gates: Gates) -> GatedSolution:
    """A gated linear network on one of the laws."""
    draws = at(results.scale, paper=20_000, quick=10_000, tiny=2000)
    task = task_of(law, results.scale)
    return results.once((law, repr(gates)), lambda: gated_solution(task, gates, num_samples=draws))


def losses(results: Results, law: str) -> dict[str, float]:
    """Limiting loss of one gate of each kind."""
    return {name: solved(results, law, gates).limiting_loss for name, gates in SINGLE.items()}


def frozen(results: Results, law: str) -> np.ndarray:
    """Limiting loss of a linear network behind the gate that the neuron has at each record, (member, time)."""
    weights = results[law].weights[:, :, 0].astype(float)
    task = task_of(law, results.scale)

    def compute() -> np.ndarray:
        rows = weights.reshape(-1, weights.shape[-1])
        found = [gated_solution(task, Directions(row[None])).limiting_loss for row in rows]
        return np.array(found).reshape(weights.shape[:2])

    return results.once(("frozen", law), compute)


def numbers(scale: Scale) -> tuple[int, ...]:
    """How many gates."""
    return at(scale, paper=(1, 2, 4, 8), quick=(1, 2, 4), tiny=(1, 2))


BUMPS, RANDOM = "bumps, evenly spaced", "random directions"


def by_number(results: Results, law: str) -> dict[str, np.ndarray]:
    """Limiting loss of growing numbers of gates, (seed, number); bumps have no seed."""
    seeds = range(at(results.scale, paper=3, quick=2, tiny=2))
    count = numbers(results.scale)
    structures = {
        BUMPS: [[Bump(copies=num) for num in count]],
        RANDOM: [[RandomDirections(copies=num, seed=seed) for num in count] for seed in seeds],
    }
    return {
        name: np.array(
            [[solved(results, law, gates).limiting_loss for gates in row] for row in rows]
        )
        for name, rows in structures.items()
    }


def spectra(results: Results) -> dict[str, np.ndarray]:
    """Rates of all modes, fastest first, on Gaussian data: closed forms, but for exclusive gates, which are drawn."""
    structures: dict[str, Gates] = {
        "one half-space, any direction": Bump(),
        "four bumps": Bump(copies=4),
        "one bump four times": Redundant(Bump(), copies=4),
        "four random directions": RandomDirections(copies=4),
        "two bumps, exclusive": Exclusive(Bump(copies=2)),
    }
    return {name: solved(results, GAUSSIAN, gates).rates for name, gates in structures.items()}


def draw(results: Results) -> Any:
    """The race by loss and by time, where it ends, what a neuron does, more gates, and how fast modes go."""
    figure: Any = new_figure(11.5, 6.8)
    grid = figure.subplots(2, 3)
    _draw_race(grid[0, 0], results)
    _draw_falls(grid[0, 1], results)
    _draw_ends(grid[0, 2], results)
    _draw_frozen(grid[1, 0], results)
    _draw_numbers(grid[1, 1], results)
    _draw_spectra(grid[1, 2], results)
    make_small(grid.ravel())
    return figure


def _colors() -> dict[str, str]:

    return {SPINS: ORANGE, BETWEEN: GRAY, GAUSSIAN: BLUE}


# Structures, in the order of SINGLE: Okabe and Ito's palette.
PALETTE = ("#D55E00", "#E69F00", "#CC79A7", "#009E73", "#0072B2", "#56B4E9", "#999999")


def _draw_race(ax: Any, results: Results) -> None:

    place = -np.arange(len(SINGLE))
    for law, color in _colors().items():
        values = np.array(list(losses(results, law).values()))
        ax.plot(values, place, "o-", color=color, ms=5, mew=0, lw=0.8, alpha=0.9, label=LAWS[law])
        best = int(np.argmin(values))
        ax.plot(values[best], place[best], "o", ms=10, mfc="none", mec=color, mew=1.2)
    ax.set_yticks(place, list(SINGLE), fontsize=SMALL)
    ax.set(xlabel="limiting loss (ring: the winner)")
    ax.set_title("one gate, three laws, one covariance", fontsize=9)
    ax.legend(frameon=False, fontsize=SMALL - 1)


def _draw_falls(ax: Any, results: Results) -> None:

    for (name, gates), color in zip(SINGLE.items(), PALETTE, strict=True):
        one = solved(results, SPINS, gates)
        ax.plot(TIMES, one.loss(one.weights(TIMES)), color=color, lw=1.3, label=name)
    ax.set(xscale="log", xlabel="flow time", ylabel="loss")
    ax.set_title("spins: how the loss falls", fontsize=9)
    ax.legend(frameon=False, fontsize=SMALL - 1)


def _draw_ends(ax: Any, results: Results) -> None:

    size = sites(results.scale)
    ax.axhline(0, color=GRAY, lw=0.5)
    for (name, gates), color in zip(SINGLE.items(), PALETTE, strict=True):
        if name in ("bump", "majority of three", "Mexican hat", "flat"):
            field = solved(results, SPINS, gates).limit()[0]
            ax.plot(
                np.roll(field, size // 2 - int(field.argmax())), color=color, lw=1.3, label=name
            )
    ax.set(xlabel="site (largest weight at the center)", ylabel="weight")
    ax.set_title("spins: fields behind these gates at the end", fontsize=9)
    ax.legend(frameon=False, fontsize=SMALL - 1)


def _draw_frozen(ax: Any, results: Results) -> None:

    colors = _colors()
    for law in (SPINS, GAUSSIAN):
        times, values = results[law].times, frozen(results, law)
        label = f"{LAWS[law]}, {len(values)} starts"
        for index, row in enumerate(values):
            shown = label if index == 0 else None
            ax.plot(np.maximum(times, 0.5), row, "o-", color=colors[law], ms=3, lw=1, label=shown)
        best = min(losses(results, law).values())
        ax.axhline(best, color=colors[law], lw=0.8, ls=":")
    ax.set(
        xscale="log",
        xlabel="flow time at which the neuron's gate is frozen (first: the start)",
        ylabel="limiting loss",
    )
    ax.set_title("ours: gates that a ReLU neuron has (dotted: winners)", fontsize=9, color=GREEN)
    ax.legend(frameon=False, fontsize=SMALL - 1)


def _draw_numbers(ax: Any, results: Results) -> None:

    count = numbers(results.scale)
    for law in (SPINS, GAUSSIAN):
        for (name, values), style in zip(
            by_number(results, law).items(), ("o-", "s--"), strict=True
        ):
            error = values.std(axis=0, ddof=1) if len(values) > 1 else None
            label = f"{name}, {LAWS[law]}"
            ax.errorbar(
                count,
                values.mean(axis=0),
                error,
                fmt=style,
                color=_colors()[law],
                ms=4,
                lw=1,
                label=label,
            )
    ax.set(xscale="log", xlabel="gates", ylabel="limiting loss")
    ax.set_xticks(count, [str(num) for num in count])
    ax.minorticks_off()
    ax.set_title("ours: more gates", fontsize=9, color=GREEN)
    ax.legend(frameon=False, fontsize=SMALL - 1)


def _draw_spectra(ax: Any, results: Results) -> None:

    for (name, rates), color in zip(spectra(results).items(), PALETTE, strict=False):
        moving = rates[rates > 0]
        ax.plot(
            (np.arange(len(moving)) + 0.5) / len(rates), moving, color=color, lw=1.3, label=name
        )
    ax.set(
        yscale="log",
        xlabel="modes (those that never move left out)",
        ylabel="rate 2λ/K²",
        xlim=(0, 1),
        ylim=(None, 100),
    )
    ax.set_title("Gaussian: how fast modes learn", fontsize=9)
    ax.legend(frameon=False, fontsize=SMALL - 1, loc="upper right")


def questions(results: Results) -> Sequence[Question]:
    """What note 1 asks of the race."""
    found = {law: losses(results, law) for law in LAWS}
    winners = {law: min(values, key=values.__getitem__) for law, values in found.items()}
    size = sites(results.scale)
    how = f"closed forms on a ring of {size} sites, J = {COUPLINGS}; NLGP measured on draws but for the bump"
    table = "; ".join(
        f"{LAWS[law]}: " + ", ".join(f"{name} {printed(loss, 4)}" for name, loss in values.items())
        for law, values in found.items()
    )
    return [
        Question(
            "GATE1",
            "note 1, §5.1.2",
            "Which gating structure minimizes the limiting loss?",
            f"Of single half-spaces {WORDS[winners[SPINS]]} on spins and {WORDS[winners[GAUSSIAN]]} on Gaussian data "
            f"of the same covariances; at gain {GAIN:g}, between the two, {WORDS[winners[BETWEEN]]}.",
            table,
            how,
        ),
        _speed(results),
        _neuron(results, found, winners),
        _more(results),
    ]


WORDS = {
    "bump": "a bump",
    "majority of three": "a majority of three sites",
    "two alike": "two sites alike",
    "Mexican hat": "a Mexican hat",
    "flat": "the flat gate",
    "wave": "a wave",
    "random": "a random direction",
}


def _speed(results: Results) -> Question:
    halves = {name: solved(results, SPINS, gates).time_to(0.5) for name, gates in SINGLE.items()}
    rates = [solved(results, SPINS, gates).rates for gates in SINGLE.values()]
    same = max(np.abs(one - rates[0]).max() for one in rates) < 1e-9
    first = min(halves, key=halves.__getitem__)
    largest = ", ".join(f"{name} {one.max():.3g}" for name, one in spectra(results).items())
    return Question(
        "GATE2",
        "note 1, §5.1.1",
        "Does the structure with the smallest eigenvalues of A win, and which eigenvalues matter?",
        "Modes of large eigenvalues are the fast ones. "
        + (
            "But A is half the mean covariance for every half-space, so that one gate "
            if same
            else "One gate "
        )
        + f"is faster than another only by where b lies: on spins {WORDS[first]} first.",
        "flow time at which the loss has fallen by half of what it will: "
        + ", ".join(f"{name} {time:.3f}" for name, time in halves.items())
        + f". Largest rates on Gaussian data: {largest}",
        "eigenvalues of A, and the closed form of the loss from fields of zeros",
    )


def _neuron(
    results: Results, found: Mapping[str, Mapping[str, float]], winners: Mapping[str, str]
) -> Question:
    parts, reached = [], []
    for law in (SPINS, GAUSSIAN):
        values, best = frozen(results, law), found[law][winners[law]]
        reached.append(bool(np.abs(values[:, -1] - best).max() < 0.002))
        parts.append(
            f"{LAWS[law]}: {spread(values[:, 0], 4)} at the start, {spread(values[:, -1], 4)} at flow time "
            f"{results[law].times[-1]:g}; {winners[law]} {printed(best, 4)}"
        )
    answer = (
        "By the limiting loss, for one neuron: its gate becomes that of the winner, a bump on spins although flat "
        "gates learn faster there, and flat on Gaussian data."
        if all(reached)
        else "Neither throughout: on "
        + " and ".join(law for law, one in zip((SPINS, GAUSSIAN), reached, strict=True) if not one)
        + " the neuron's own gate does not end at the winner's loss."
    )
    return Question(
        "GATE3",
        "note 1, §5.1",
        "Does a ReLU network end up with the gates that learn fastest, or with those of the least limiting loss?",
        answer,
        "limiting loss behind the neuron's own gate, frozen: " + "; ".join(parts),
        f"exact flows of a ReLU neuron from {len(results[SPINS].initial)} starts",
    )


def _more(results: Results) -> Question:
    parts, verdicts = [], []
    for law in (SPINS, GAUSSIAN):
        values = by_number(results, law)
        bumps, random = values[BUMPS][0], values[RANDOM]
        apart, noise = bumps[-1] - random[:, -1].mean(), 2 * random[:, -1].std(ddof=1)
        better = "about as good" if abs(apart) < noise else "better" if apart < 0 else "worse"
        verdicts.append(f"{better} on {law if law == SPINS else f'{law} data'}")
        rows = [
            ", ".join(printed(loss, 4) for loss in bumps),
            ", ".join(spread(one, 4) for one in random.T),
        ]
        parts.append(f"{LAWS[law]}: bumps {rows[0]}; random directions {rows[1]}")
    return Question(
        "GATE4",
        "note 1, §5.1.2",
        "How should several gates be chosen?",
        f"Differently from each other: the same gate twice is one gate. Against {numbers(results.scale)[-1]} random "
        f"directions, evenly spaced bumps are {' and '.join(verdicts)}.",
        f"limiting loss of {', '.join(map(str, numbers(results.scale)))} gates; "
        + ". ".join(parts),
        "closed forms on Gaussian data; on spins from two gates on measured on draws; spread over directions",
    )


def setting(scale: Scale) -> str:
    """In words."""
    return (
        f"N = {sites(scale)}, Ising J = {COUPLINGS}; Gaussian and NLGP (gain {GAIN:g}) of the same covariances. Gated "
        "linear networks from fields of zeros, population loss without ½. The neuron: exact gradient flow from Glorot "
        f"starts, {num_starts(scale)} of them."
    )


FIGURE = PaperFigure(
    name="notes/gates",
    title="Note 1, §5.1: the race of gating structures",
    caption=(
        "Limiting loss of linear networks behind one fixed gate, on three laws of the same covariances; how the loss "
        "falls on spins; the fields at the end. Ours: the gate that a ReLU neuron has at some time, frozen, and what a "
        "linear network behind it would end with; more gates; and the rates of all modes. Every single half-space has "
        "the same rates."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
