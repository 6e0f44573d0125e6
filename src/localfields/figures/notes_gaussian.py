"""Note 1, Figs. 1 and 2: one neuron on Gaussian data, in position and in frequency space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..experiments import Experiment, Training
from ..lattice import fourier_basis, fourier_frequencies
from ..networks import SingleNeuron
from ..plots._fields import draw_over_time
from ..plots._style import (
    BLUE,
    GRAY,
    ORANGE,
    SMALL,
    add_time_bar,
    finish,
    new_figure,
    time_colors,
)
from ..stimuli import NLGP, Gaussian
from ..tasks import Discrimination
from ..theory import LinearResponse, ModeFlow, follow_modes, winning_mode
from ..trajectory import Trajectory
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

SITES, GAIN, XI, RATE = 40, 0.01, (1.0, 2.0), 0.01
TRAINED, QUIET = "trained", "without noise"
LONG = np.geomspace(0.1, 2000, 200)  # flow times until one wave is left
CLOSE = 1.0  # percent of the field
LINEAR = LinearResponse(slope="gaussian")


def task() -> Discrimination:
    """Nearly Gaussian, as in the note."""
    return Discrimination(*(NLGP((SITES,), xi=xi, gain=GAIN) for xi in XI))


def gaussian() -> Discrimination:
    """Gaussian."""
    return Discrimination(*(Gaussian((SITES,), xi=xi) for xi in XI))


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """As in the note, and the same neurons with the exact gradient."""
    network = SingleNeuron(init_scale=1.0)

    def method(batch: int, estimator: str) -> Training:
        return Training(
            learning_rate=RATE,
            steps=at(scale, paper=2000, quick=2000, tiny=40),
            batch=batch,
            estimator=estimator,
            members=at(scale, paper=3, quick=2, tiny=2),
            every=20,
            quantities=("weights",),
        )

    noisy = method(at(scale, paper=10_000, quick=1000, tiny=20), "independent")
    return {
        TRAINED: Experiment(task(), network, noisy),
        QUIET: Experiment(gaussian(), network, method(2, "exact")),
    }


def followed(run: Trajectory, times: np.ndarray) -> list[ModeFlow]:
    """The closed form, from the first field of every member."""
    return [follow_modes(task(), field.astype(float), times, LINEAR) for field in run.initial[:, 0]]


def in_waves(fields: np.ndarray) -> np.ndarray:
    """Coefficients in the real Fourier basis, last axis."""
    return fields.astype(float) @ fourier_basis((SITES,))


def off(run: Trajectory) -> np.ndarray:
    """‖w − w'‖/‖w'‖ of trained and closed form, (member, time)."""
    theory = np.stack([flow.fields for flow in followed(run, run.times)])
    return np.linalg.norm(run.weights[:, :, 0] - theory, axis=-1) / np.linalg.norm(theory, axis=-1)


def draw(results: Results) -> Any:
    """Fields over time, trained and solved; both as waves; the basis; which wave is left."""
    figure: Any = new_figure(11, 6.6)
    (trained_ax, solved_ax, waves_ax), (basis_ax, apart_ax, left_ax) = figure.subplots(2, 3)
    run = results[TRAINED]
    trained, solved = run.weights[0, :, 0], followed(run, run.times)[0].fields
    limit = 1.05 * max(np.abs(fields).max() for fields in (trained, solved))
    for ax, fields, title in (
        (trained_ax, trained, "trained"),
        (solved_ax, solved, "closed form"),
    ):
        draw_over_time(ax, fields, run.times)
        finish(ax, title, xlabel="site", ylabel="weight", ylim=(-limit, limit))
    add_time_bar(figure, solved_ax, float(run.times[-1]))

    waves_ax.axhline(0, color=GRAY, lw=0.5)
    waves_ax.plot(in_waves(trained[-1]), "o", color=ORANGE, ms=4, mew=0, label="trained")
    waves_ax.plot(in_waves(solved[-1]), color=BLUE, lw=1.1, label="closed form")
    labels = {"xlabel": "wave, by frequency", "ylabel": "coefficient"}
    finish(waves_ax, "at the end, in frequency space", legend={}, **labels)

    basis = fourier_basis((SITES,))
    bound = np.abs(basis).max()
    basis_ax.imshow(basis, cmap="RdBu_r", vmin=-bound, vmax=bound, interpolation="nearest")
    finish(basis_ax, "the real Fourier basis", xlabel="wave, by frequency", ylabel="site")

    for name, color in ((TRAINED, ORANGE), (QUIET, BLUE)):
        apart_ax.plot(run.times[1:], 100 * off(results[name]).T[1:], lw=1, color=color)
        apart_ax.plot([], [], color=color, lw=1, label=name)
    labels = {"xlabel": "flow time", "ylabel": "distance (% of ‖w‖)", "ylim": (0, None)}
    finish(apart_ax, "ours: trained against closed form, all seeds", legend={}, **labels)

    flow = followed(run, LONG)[0]
    colors = time_colors()
    for wave in range(6):
        length = flow.amplitudes[:, wave]
        left_ax.plot(LONG, length, color=colors(wave / 5), lw=1.2, label=f"{wave}")
    left_ax.axhline(winning_mode(task(), LINEAR).norm, color="black", lw=0.8, ls=":")
    left_ax.axvline(float(run.times[-1]), color=GRAY, lw=0.8, ls="--")
    labels = {"xlabel": "flow time (dashed: end of training)", "ylabel": "length of the wave"}
    legend = {"fontsize": SMALL - 1, "loc": "center right"}
    title = "ours: which wave is left (cycles)"
    finish(left_ax, title, legend=legend, xscale="log", **labels)
    return figure


def _described(apart: np.ndarray, quiet: np.ndarray) -> str:
    if apart.max() < CLOSE:
        return "Yes."
    if quiet.max() < CLOSE:
        return "Yes; what is left is the noise of the batches, without which it goes."
    return f"Not to within {CLOSE:g} % here."


def questions(results: Results) -> Sequence[Question]:
    """What note 1 says and asks of one neuron on Gaussian data."""
    run = results[TRAINED]
    apart, quiet = 100 * off(run), 100 * off(results[QUIET])
    winner = winning_mode(task(), LINEAR)
    flows = followed(run, LONG)
    takeover = np.array([flow.takeover(winner.frequency, 0.9) for flow in flows])
    rates = np.sort(np.unique(np.round(winner.growth_rates.ravel(), 12)))
    ends = [flow.amplitudes[-1, flow.frequencies.index(winner.frequency)] for flow in flows]
    basis = fourier_basis((SITES,))
    bare = basis / np.where(
        np.isin(fourier_frequencies((SITES,))[:, 0], (0, SITES // 2)), 1, np.sqrt(2)
    )
    cycles = winner.frequency[0]
    return [
        Question(
            "GAU1",
            "note 1, Fig. 1",
            "Does eq. (21) describe training on Gaussian data?",
            _described(apart, quiet),
            f"distance from the closed form at the end {spread(apart[:, -1], 1)} % of the field, "
            f"at most {printed(float(apart.max()), 1)} % along the run; without noise in the "
            f"gradient {spread(quiet[:, -1], 1)} % and {printed(float(quiet.max()), 1)} %",
            f"{len(apart)} seeds, the same first fields in all",
        ),
        Question(
            "GAU2",
            "note 1, after eq. (31)",
            "Which waves are left in the very long limit? Only the flat one was seen; does that "
            "generalize?",
            f"The wave with the smallest λ₀/λ₁, here of {cycles} cycles: it alone is stable, and "
            "the global minimum. For two lengthscales of these kernels it is flat where the "
            "class of label 1 has the longer one, and alternates from site to site where it has "
            "the shorter one.",
            f"90 % of ‖w‖² from flow time {spread(takeover, 0)} on (training ends at "
            f"{run.times[-1]:g}); length {spread(ends, 4)} at {LONG[-1]:g}, predicted "
            f"{printed(winner.norm, 4)}; the slowest other wave dies at a rate of "
            f"{printed(float(-rates[rates < -1e-9].max()), 4)}",
            "closed form of every wave over time, from the trained neurons' first fields",
        ),
        Question(
            "GAU3",
            "note 1, Fig. 2 and eqs. (33)–(35)",
            "Are real and imaginary parts of the Fourier basis unit vectors?",
            "Not by themselves: all but the flat and the alternating one need a factor of √2.",
            "norms of the printed columns "
            f"{printed(float(np.linalg.norm(bare, axis=0).min()), 4)} to "
            f"{printed(float(np.linalg.norm(bare, axis=0).max()), 4)}; of ours all "
            f"{printed(float(np.linalg.norm(basis, axis=0).mean()), 4)}",
            "closed form",
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    method: Any = experiments(scale)[TRAINED].method
    return (
        f"N = {SITES}, ξ = ({XI[0]:g}, {XI[1]:g}), gain {GAIN:g}, one ReLU neuron, initial "
        f"variance 2/(N + 1), learning rate {RATE:g}, batch {method.batch:,}, estimator "
        f"independent, {method.steps:,} steps recorded every {method.every}, {method.members} "
        "seeds (one shown). Without noise: Gaussian data, estimator exact. Our loss has no ½, so "
        "that flow goes twice as fast as in eq. (21)."
    )


FIGURE = PaperFigure(
    name="notes/gaussian",
    title="Note 1, Figs. 1 and 2: one neuron on Gaussian data",
    caption=(
        "A field over time (blue to red), trained and from the closed form, and both at the end "
        "in frequency space; the real Fourier basis. Ours: how far the two are apart, and the "
        "waves of the same field followed much longer, until the flat one alone is left (dotted: "
        "its predicted length)."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
)
