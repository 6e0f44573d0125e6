"""Note 1, §5.1: which gates win, by limiting loss or by speed, and what a neuron does."""

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
from ..plots._style import (
    AMBER,
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    SMALL,
    finish,
    new_figure,
)
from ..stimuli import NLGP, Ising, Stimulus
from ..tasks import Discrimination
from ..theory import ExactIsing, GatedSolution, LinearResponse, gated_solution
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

COUPLINGS, GAIN = (0.3, 0.7), 1.0
SPINS, BETWEEN, GAUSSIAN = "spins", "between", "Gaussian"
DATA = {SPINS: "spins (Ising)", BETWEEN: f"NLGP, gain {GAIN:g}", GAUSSIAN: "Gaussian"}
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


def sites(scale: FigureScale) -> int:
    """On the ring; few at the smallest scale, where sums over states are then possible."""
    return at(scale, paper=40, quick=40, tiny=12)


def task_of(data: str, scale: FigureScale) -> Discrimination:
    """Spins, or other data with their covariances."""
    spins = [Ising((sites(scale),), coupling=j) for j in COUPLINGS]
    if data == BETWEEN:
        classes: list[Stimulus] = [
            NLGP.with_correlation(stimulus.covariance(), gain=GAIN) for stimulus in spins
        ]
    else:
        classes = [stimulus if data == SPINS else stimulus.gaussian_clone() for stimulus in spins]
    return Discrimination(*classes)


def num_starts(scale: FigureScale) -> int:
    """Members of the neuron's ensembles."""
    return at(scale, paper=3, quick=2, tiny=2)


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """One ReLU neuron, whose gates are not fixed, on spins and on their Gaussian clone."""
    theories = {SPINS: (ExactIsing(), 100.0), GAUSSIAN: (LinearResponse(), 10_000.0)}
    num = at(scale, paper=10, quick=6, tiny=3)
    return {
        data: Experiment(
            task_of(data, scale),
            SingleNeuron(),
            Solution(
                theory,
                times=np.append(0, np.geomspace(1, end, num)).round(3),
                members=num_starts(scale),
                tolerance=1e-6,
            ),
        )
        for data, (theory, end) in theories.items()
    }


def solved(results: Results, data: str, gates: Gates) -> GatedSolution:
    """A gated linear network on one kind of data."""
    num_samples = at(results.scale, paper=20_000, quick=10_000, tiny=2000)
    task = task_of(data, results.scale)
    return results.once(
        (data, repr(gates)), lambda: gated_solution(task, gates, num_samples=num_samples)
    )


def losses(results: Results, data: str) -> dict[str, float]:
    """Limiting loss of one gate of each kind."""
    return {name: solved(results, data, gates).limiting_loss for name, gates in SINGLE.items()}


def frozen(results: Results, data: str) -> np.ndarray:
    """Limiting loss behind the gate that the neuron has at each record, (member, time)."""
    weights = results[data].weights[:, :, 0].astype(float)
    task = task_of(data, results.scale)

    def compute() -> np.ndarray:
        rows = weights.reshape(-1, weights.shape[-1])
        limits = [gated_solution(task, Directions(row[None])).limiting_loss for row in rows]
        return np.array(limits).reshape(weights.shape[:2])

    return results.once(("frozen", data), compute)


def numbers(scale: FigureScale) -> tuple[int, ...]:
    """How many gates."""
    return at(scale, paper=(1, 2, 4, 8), quick=(1, 2, 4), tiny=(1, 2))


BUMPS, RANDOM = "bumps, evenly spaced", "random directions"


def by_number(results: Results, data: str) -> dict[str, np.ndarray]:
    """Limiting loss of growing numbers of gates, (seed, number); bumps have no seed."""
    seeds = range(at(results.scale, paper=3, quick=2, tiny=2))
    count = numbers(results.scale)
    structures = {
        BUMPS: [[Bump(copies=num) for num in count]],
        RANDOM: [[RandomDirections(copies=num, seed=seed) for num in count] for seed in seeds],
    }
    return {
        name: np.array(
            [[solved(results, data, gates).limiting_loss for gates in row] for row in rows]
        )
        for name, rows in structures.items()
    }


def spectra(results: Results) -> dict[str, np.ndarray]:
    """Rates of all modes on Gaussian data, fastest first; closed forms but for exclusive gates."""
    structures: dict[str, Gates] = {
        "one half-space, any direction": Bump(),
        "four bumps": Bump(copies=4),
        "one bump four times": Redundant(Bump(), copies=4),
        "four random directions": RandomDirections(copies=4),
        "two bumps, exclusive": Exclusive(Bump(copies=2)),
    }
    return {name: solved(results, GAUSSIAN, gates).rates for name, gates in structures.items()}


COLORS = {SPINS: ORANGE, BETWEEN: GRAY, GAUSSIAN: BLUE}
# Structures, in the order of SINGLE: Okabe and Ito's palette.
PALETTE = (ORANGE, AMBER, PURPLE, GREEN, BLUE, SKY_BLUE, GRAY)
TINY = {"fontsize": SMALL - 1}  # legends


def draw(results: Results) -> Any:
    """The race by loss and by time, where it ends, what a neuron does, more gates, and rates."""
    figure: Any = new_figure(11.5, 6.8)
    race, falls, ends, neuron, more, rates = figure.subplots(2, 3).ravel()
    places = -np.arange(len(SINGLE))
    for data, color in COLORS.items():
        values = np.array(list(losses(results, data).values()))
        style = {"color": color, "ms": 5, "mew": 0, "lw": 0.8, "alpha": 0.9}
        race.plot(values, places, "o-", label=DATA[data], **style)
        best = int(np.argmin(values))
        race.plot(values[best], places[best], "o", ms=10, mfc="none", mec=color, mew=1.2)
    race.set_yticks(places, list(SINGLE))
    title = "one gate, three kinds of data, one covariance"
    finish(race, title, legend=TINY, xlabel="limiting loss (ring: the winner)")

    size = sites(results.scale)
    ends.axhline(0, color=GRAY, lw=0.5)
    for (name, gates), color in zip(SINGLE.items(), PALETTE, strict=True):
        solution = solved(results, SPINS, gates)
        falls.plot(TIMES, solution.loss(solution.weights(TIMES)), color=color, lw=1.3, label=name)
        if name in ("bump", "majority of three", "Mexican hat", "flat"):
            field = solution.limit()[0]
            centered = np.roll(field, size // 2 - int(field.argmax()))
            ends.plot(centered, color=color, lw=1.3, label=name)
    labels = {"xscale": "log", "xlabel": "flow time", "ylabel": "loss"}
    finish(falls, "spins: how the loss falls", legend=TINY, **labels)
    labels = {"xlabel": "site (largest weight at the center)", "ylabel": "weight"}
    finish(ends, "spins: fields behind these gates at the end", legend=TINY, **labels)

    count = numbers(results.scale)
    for data in (SPINS, GAUSSIAN):
        color, times, values = COLORS[data], results[data].times, frozen(results, data)
        for member, row in enumerate(values):
            label = None if member else f"{DATA[data]}, {len(values)} starts"
            neuron.plot(np.maximum(times, 0.5), row, "o-", color=color, ms=3, lw=1, label=label)
        neuron.axhline(min(losses(results, data).values()), color=color, lw=0.8, ls=":")
        for (name, by_seed), marker in zip(
            by_number(results, data).items(), ("o-", "s--"), strict=True
        ):
            error = by_seed.std(axis=0, ddof=1) if len(by_seed) > 1 else None
            style = {"fmt": marker, "color": color, "ms": 4, "lw": 1}
            more.errorbar(
                count, by_seed.mean(axis=0), error, label=f"{name}, {DATA[data]}", **style
            )
    title = "ours: gates that a ReLU neuron has (dotted: winners)"
    when = "flow time at which the neuron's gate is frozen (first: the start)"
    finish(neuron, title, legend=TINY, xscale="log", xlabel=when, ylabel="limiting loss")
    labels = {"xscale": "log", "xlabel": "gates", "ylabel": "limiting loss"}
    finish(more, "ours: more gates", legend=TINY, **labels)
    more.set_xticks(count, [str(num) for num in count])
    more.minorticks_off()

    for (name, values), color in zip(spectra(results).items(), PALETTE, strict=False):
        moving = values[values > 0]
        share = (np.arange(len(moving)) + 0.5) / len(values)
        rates.plot(share, moving, color=color, lw=1.3, label=name)
    labels = {"xlabel": "modes (those that never move left out)", "ylabel": "rate 2λ/K²"}
    limits = {"yscale": "log", "xlim": (0, 1), "ylim": (None, 100)}
    legend = {**TINY, "loc": "upper right"}
    finish(rates, "Gaussian: how fast modes learn", legend=legend, **labels, **limits)
    return figure


def questions(results: Results) -> Sequence[Question]:
    """What note 1 asks of the race."""
    by_data = {data: losses(results, data) for data in DATA}
    winners = {data: min(values, key=values.__getitem__) for data, values in by_data.items()}
    size = sites(results.scale)
    how = (
        f"closed forms on a ring of {size} sites, J = {COUPLINGS}; NLGP measured on samples but "
        "for the bump"
    )
    table = "; ".join(
        f"{DATA[data]}: " + ", ".join(f"{name} {printed(loss, 4)}" for name, loss in values.items())
        for data, values in by_data.items()
    )
    return [
        Question(
            "GATE1",
            "note 1, §5.1.2",
            "Which gating structure minimizes the limiting loss?",
            f"Of single half-spaces {WORDS[winners[SPINS]]} on spins and "
            f"{WORDS[winners[GAUSSIAN]]} on Gaussian data of the same covariances; at gain "
            f"{GAIN:g}, between the two, {WORDS[winners[BETWEEN]]}.",
            table,
            how,
        ),
        _speed(results),
        _neuron(results, by_data, winners),
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
    same = max(np.abs(values - rates[0]).max() for values in rates) < 1e-9
    first = min(halves, key=halves.__getitem__)
    largest = ", ".join(f"{name} {values.max():.3g}" for name, values in spectra(results).items())
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
    results: Results, by_data: Mapping[str, Mapping[str, float]], winners: Mapping[str, str]
) -> Question:
    parts, reached = [], []
    for data in (SPINS, GAUSSIAN):
        values, best = frozen(results, data), by_data[data][winners[data]]
        reached.append(bool(np.abs(values[:, -1] - best).max() < 0.002))
        parts.append(
            f"{DATA[data]}: {spread(values[:, 0], 4)} at the start, {spread(values[:, -1], 4)} at "
            f"flow time {results[data].times[-1]:g}; {winners[data]} {printed(best, 4)}"
        )
    answer = (
        "By the limiting loss, for one neuron: its gate becomes that of the winner, a bump on "
        "spins although flat gates learn faster there, and flat on Gaussian data."
        if all(reached)
        else "Neither throughout: on "
        + " and ".join(
            data for data, ended in zip((SPINS, GAUSSIAN), reached, strict=True) if not ended
        )
        + " the neuron's own gate does not end at the winner's loss."
    )
    return Question(
        "GATE3",
        "note 1, §5.1",
        "Does a ReLU network end up with the gates that learn fastest, or with those of the "
        "least limiting loss?",
        answer,
        "limiting loss behind the neuron's own gate, frozen: " + "; ".join(parts),
        f"exact flows of a ReLU neuron from {len(results[SPINS].initial)} starts",
    )


def _more(results: Results) -> Question:
    parts, verdicts = [], []
    for data in (SPINS, GAUSSIAN):
        values = by_number(results, data)
        bumps, random = values[BUMPS][0], values[RANDOM]
        apart, noise = bumps[-1] - random[:, -1].mean(), 2 * random[:, -1].std(ddof=1)
        better = "about as good" if abs(apart) < noise else "better" if apart < 0 else "worse"
        verdicts.append(f"{better} on {data if data == SPINS else f'{data} data'}")
        rows = [
            ", ".join(printed(loss, 4) for loss in bumps),
            ", ".join(spread(by_seed, 4) for by_seed in random.T),
        ]
        parts.append(f"{DATA[data]}: bumps {rows[0]}; random directions {rows[1]}")
    return Question(
        "GATE4",
        "note 1, §5.1.2",
        "How should several gates be chosen?",
        "Differently from each other: the same gate twice is one gate. Against "
        f"{numbers(results.scale)[-1]} random directions, evenly spaced bumps are "
        f"{' and '.join(verdicts)}.",
        f"limiting loss of {', '.join(map(str, numbers(results.scale)))} gates; "
        + ". ".join(parts),
        "closed forms on Gaussian data; on spins from two gates on measured on samples; spread "
        "over directions",
    )


def setting(scale: FigureScale) -> str:
    """In words."""
    return (
        f"N = {sites(scale)}, Ising J = {COUPLINGS}; Gaussian and NLGP (gain {GAIN:g}) of the "
        "same covariances. Gated linear networks from fields of zeros, population loss without "
        f"½. The neuron: exact gradient flow from Glorot starts, {num_starts(scale)} of them."
    )


FIGURE = PaperFigure(
    name="notes/gates",
    title="Note 1, §5.1: the race of gating structures",
    caption=(
        "Limiting loss of linear networks behind one fixed gate, on three kinds of data of the "
        "same covariances; how the loss falls on spins; the fields at the end. Ours: the gate that "
        "a ReLU neuron has at some time, frozen, and what a linear network behind it would end "
        "with; more gates; and the rates of all modes. Every single half-space has the same "
        "rates."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
