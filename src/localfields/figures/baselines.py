"""Beyond the paper: a network beside methods that learn without labels, on six stimuli."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..baselines import PCA, RBM, Autoencoder, Baseline, FastICA, SparseCoding
from ..experiments import Experiment, Fit, Training
from ..networks import SingleNeuron
from ..plots._fields import draw_sheet, draw_stack
from ..plots._style import EXTENDED, LOCALIZED, SMALL, finish, new_figure
from ..stimuli import NLGP, EllipticalShell, ImagePatches, Ising, Kur, Stimulus
from ..stimuli.preprocess import Center, ContrastNormalize, Scale
from ..tasks import Discrimination
from ..trajectory import Trajectory, localized_from
from .base import FigureScale, PaperFigure, Question, Results, at, printed, spread

XI, COUPLINGS, BLURS = (0.5, 1.0), (0.3, 0.7), (0.0, 1.0)
NETWORK, ICA = "network", "ICA"
HEAVY, LIGHT, BINARY, SPINS, SHELL, IMAGES = (
    "Kur(3)",
    "Kur(10)",
    "NLGP(100)",
    "Ising",
    "elliptical shell",
    "images",
)
STIMULI = (HEAVY, LIGHT, BINARY, SPINS, SHELL, IMAGES)
NEGATIVE = (LIGHT, BINARY, SPINS)  # kurtosis, and not elliptical


def methods(scale: FigureScale, size: int) -> dict[str, Baseline]:
    """Everything beside the network."""
    components = at(scale, paper=20, quick=20, tiny=3)
    steps = at(scale, paper=1.0, quick=0.3, tiny=0.001)
    return {
        "PCA": PCA(components),
        ICA: FastICA(min(size, at(scale, paper=40, quick=40, tiny=6))),
        "sparse coding": SparseCoding(2 * components, steps=max(1, int(600 * steps))),
        "Boltzmann machine": RBM(components, learning_rate=0.2, steps=int(30_000 * steps)),
        "autoencoder": Autoencoder(components, sparsity=0.1, steps=int(20_000 * steps)),
    }


METHODS = (NETWORK, *methods("paper", 40))


def task_of(name: str, scale: FigureScale) -> Discrimination:
    """Two lengthscales of a stimulus: of a distribution, or of photographs, sharp and blurred."""
    ring = (at(scale, paper=40, quick=40, tiny=12),)
    if name == IMAGES:
        side = at(scale, paper=10, quick=10, tiny=5)
        steps = (ContrastNormalize(), Center(), Scale(each="all"))
        common: dict[str, Any] = {
            "shape": (side, side),
            "patches": samples(scale),
            "preprocess": steps,
        }
        classes: list[Stimulus] = [ImagePatches(blur=blur, **common) for blur in BLURS]
    elif name == SPINS:
        classes = [Ising(ring, coupling=coupling) for coupling in COUPLINGS]
    else:
        make = {
            HEAVY: lambda xi: Kur(ring, xi=xi, k=3.0),
            LIGHT: lambda xi: Kur(ring, xi=xi, k=10.0),
            BINARY: lambda xi: NLGP(ring, xi=xi, gain=100.0),
            SHELL: lambda xi: EllipticalShell(ring, xi=xi),
        }[name]
        classes = [make(xi) for xi in XI]
    return Discrimination(*classes)


def samples(scale: FigureScale) -> int:
    """That a method sees."""
    return at(scale, paper=20_000, quick=5000, tiny=300)


def experiments(scale: FigureScale) -> Mapping[str, Experiment]:
    """Every method on every stimulus, named by both."""
    network = SingleNeuron(init_scale=0.01)
    runs = {}
    for name in STIMULI:
        task = task_of(name, scale)
        images = name == IMAGES
        training = Training(
            learning_rate=at(scale, paper=0.2, quick=0.5, tiny=0.5),
            steps=at(scale, paper=5000, quick=600, tiny=10),
            batch=at(scale, paper=1000, quick=200, tiny=10)
            if images
            else at(scale, paper=60, quick=30, tiny=2),
            members=at(scale, paper=10, quick=5, tiny=2),
            estimator="shared" if images else "orbit",
            every=at(scale, paper=500, quick=100, tiny=5),
            quantities=("weights",),
        )
        runs[f"{NETWORK}, {name}"] = Experiment(task, network, training)
        for method, baseline in methods(scale, task.stimuli[0].size).items():
            runs[f"{method}, {name}"] = Experiment(
                task, method=Fit(baseline, samples=samples(scale))
            )
    return runs


def fields_of(results: Results, method: str, stimulus: str) -> np.ndarray:
    """Final fields of all members, (field, *shape)."""
    final = results[f"{method}, {stimulus}"].final
    return final.reshape(-1, *final.shape[2:])


def ratios(results: Results, method: str, stimulus: str) -> np.ndarray:
    """IPR of each of them; 0 for a field of zeros."""
    run: Trajectory = results[f"{method}, {stimulus}"]
    return np.nan_to_num(run.ipr[:, -1].ravel())


def share(results: Results, method: str, stimulus: str) -> float:
    """Share of the fields that are localized."""
    run = results[f"{method}, {stimulus}"]
    return float(
        (ratios(results, method, stimulus) > localized_from(int(np.prod(run.shape)))).mean()
    )


def most(results: Results, method: str, stimulus: str) -> bool:
    """Whether more than half of them are."""
    return share(results, method, stimulus) > 0.5


def all_alike(results: Results, method: str, stimulus: str) -> bool:
    """Whether all fields of a method without labels are the same: it has learned nothing."""
    fields = fields_of(results, method, stimulus)
    rows = fields.reshape(len(fields), -1).astype(float)
    norms = np.linalg.norm(rows, axis=1)
    if method == NETWORK or len(rows) < 2 or not norms.all():
        return False
    rows /= norms[:, None]
    return bool(np.abs(rows @ rows[0]).min() > 0.99)


def kurtosis_of(task: Discrimination) -> str:
    """Excess kurtosis of a site, exact; of both classes where it differs."""
    values = []
    for stimulus in task.stimuli:
        marginal = stimulus.marginal()
        value = float("nan") if marginal is None else float(marginal.excess_kurtosis)
        values.append("∞" if np.isinf(value) else printed(value))
    return ", ".join(dict.fromkeys(values))


def label_row(ax: Any, text: str, x: float) -> None:
    """Write the name of a row beside its first panel."""
    place = {"transform": ax.transAxes, "rotation": 90, "ha": "center", "va": "center"}
    ax.text(x, 0.5, text, fontsize=9, **place)


def draw(results: Results) -> Any:
    """A few fields of every method on every stimulus; below, the ratio of every field."""
    figure: Any = new_figure(12, 11.2)
    heights = [1.0] * len(METHODS) + [1.35]
    grid = figure.subplots(len(heights), len(STIMULI), height_ratios=heights)
    for column, stimulus in enumerate(STIMULI):
        for ax, method in zip(grid[:, column], METHODS, strict=False):
            fields = fields_of(results, method, stimulus)
            draw_stack(ax, fields, shown=4) if fields.ndim == 2 else draw_sheet(ax, fields)
            part = share(results, method, stimulus)
            ratio = np.median(ratios(results, method, stimulus))
            color = LOCALIZED if part > 0.5 else EXTENDED
            title = f"IPR {ratio:.2f}, {100 * part:.0f} % localized"
            ax.set_title(title, fontsize=SMALL, color=color)
        kurtosis = kurtosis_of(task_of(stimulus, results.scale))
        place = {"transform": grid[0, column].transAxes, "ha": "center", "va": "bottom"}
        head = f"{stimulus}\nexcess kurtosis {kurtosis}"
        grid[0, column].text(0.5, 1.3, head, fontsize=9, **place)
        _draw_ratios(grid[-1, column], results, stimulus, labels=column == 0)
    for row, method in enumerate(METHODS):
        count = len(fields_of(results, method, HEAVY))
        label_row(grid[row, 0], f"{method}\n({count} fields)", -0.16)
    return figure


def _draw_ratios(ax: Any, results: Results, stimulus: str, labels: bool) -> None:
    generator = np.random.default_rng(0)  # only spreads points that would cover each other
    size = int(np.prod(results[f"{NETWORK}, {stimulus}"].shape))
    bound = localized_from(size)
    for place, method in enumerate(METHODS):
        values = ratios(results, method, stimulus)
        height = -place + generator.uniform(-0.22, 0.22, values.size)
        colors = np.where(values > bound, LOCALIZED, EXTENDED)
        ax.scatter(np.maximum(values, 1 / size), height, s=7, c=colors.tolist(), alpha=0.6, lw=0)
    ax.axvline(bound, color="black", ls="--", lw=0.8)
    limits = {"xscale": "log", "xlim": (0.9 / size, 1.1), "ylim": (0.5 - len(METHODS), 0.5)}
    finish(ax, xlabel="inverse participation ratio", **limits)
    ax.set_xticks((0.03, 0.1, 0.3, 1), ("0.03", "0.1", "0.3", "1"))
    ax.minorticks_off()
    ax.set_yticks(-np.arange(len(METHODS)), METHODS if labels else [""] * len(METHODS))


def _where(results: Results, method: str, stimuli: Sequence[str] = STIMULI) -> str:
    names = [name for name in stimuli if most(results, method, name)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"


def _numbers(results: Results, method: str, stimuli: Sequence[str] = STIMULI) -> str:
    parts = (
        f"{name} {100 * share(results, method, name):.0f} % (IPR "
        f"{spread(ratios(results, method, name))})"
        for name in stimuli
    )
    return f"{method}: {'; '.join(parts)}"


def questions(results: Results) -> Sequence[Question]:
    """What the comparison is made for."""
    synthetic = STIMULI[:-1]
    either = all(most(results, ICA, name) for name in (HEAVY, *NEGATIVE))
    one_sign = all(most(results, NETWORK, name) for name in NEGATIVE) and not most(
        results, NETWORK, HEAVY
    )
    others = [method for method in METHODS if method not in (NETWORK, ICA)]
    on_shell = [method for method in METHODS if most(results, method, SHELL)]
    on_images = [method for method in METHODS if most(results, method, IMAGES)]
    how = "share of fields with an IPR above 4/(N + 2), and mean ± deviation over fields; "
    how += f"{samples(results.scale):,} samples a method"
    how += ", one fit each; ten starts of a neuron" if results.scale == "paper" else ""
    same = [
        f"{method} on {name}"
        for method in METHODS
        for name in synthetic
        if all_alike(results, method, name)
    ]
    return [
        Question(
            "BASE1",
            "paper, §4.4 and figure 6",
            "Does ICA localize for either sign of the kurtosis, and the network for negative "
            "kurtosis alone?",
            ("Yes. " if either and one_sign else "Not throughout. ")
            + f"Most fields of ICA are localized on {_where(results, ICA, synthetic)}; most "
            + f"neurons on {_where(results, NETWORK, synthetic)}.",
            ". ".join(_numbers(results, method, synthetic) for method in (NETWORK, ICA)),
            how,
        ),
        Question(
            "BASE2",
            "ours",
            "And the other methods?",
            "Most fields are localized: "
            + "; ".join(f"{method} on {_where(results, method, synthetic)}" for method in others)
            + "."
            + (
                f" All fields are alike, so that nothing was learned: {'; '.join(same)}."
                if same
                else ""
            ),
            ". ".join(_numbers(results, method, synthetic) for method in others),
            how,
        ),
        Question(
            "BASE3",
            "paper, §4.3",
            "Does any of them localize on elliptical data, where only second-order structure has "
            "a direction?",
            f"Most fields of {', '.join(on_shell)} do." if on_shell else "None of them.",
            "; ".join(
                f"{method} {100 * share(results, method, SHELL):.0f} %" for method in METHODS
            ),
            how,
        ),
        Question(
            "BASE4",
            "ours",
            "And on photographs?",
            f"Most fields of {', '.join(on_images)}." if on_images else "None of them.",
            "; ".join(_numbers(results, method, (IMAGES,)) for method in METHODS),
            how,
        ),
    ]


def setting(scale: FigureScale) -> str:
    """In words."""
    runs = experiments(scale)
    training: Any = runs[f"{NETWORK}, {HEAVY}"].method
    of_images: Any = runs[f"{NETWORK}, {IMAGES}"]
    rest = "; ".join(repr(baseline) for baseline in methods(scale, 40).values())
    return (
        f"N = {runs[f'{NETWORK}, {HEAVY}'].task.shape[0]}, ξ = {XI}; Ising J = {COUPLINGS}; "
        f"images: patches {of_images.task.shape} of the two photographs of scikit-learn, sharp "
        f"and blurred by {BLURS[1]:g} pixel, each of mean zero and one contrast. Network: one "
        f"ReLU neuron without bias from {training.members} starts, telling the two lengthscales "
        f"apart, learning rate {training.learning_rate:g}, {training.steps:,} steps, estimator "
        f"{training.estimator} ({of_images.method.estimator} on images). All others see "
        f"{samples(scale):,} samples of both classes, without labels: {rest}."
    )


FIGURE = PaperFigure(
    name="baselines",
    title="A network beside methods that learn without labels",
    caption=(
        "Fields of every method (rows) on every stimulus (columns), chosen evenly from the most "
        "to the least localized and each on its own scale: orange where localized, blue where "
        "not; images as pictures, red positive. Above each: the median inverse participation "
        "ratio and the share of localized fields. Bottom: every field."
    ),
    setting=setting,
    draw=draw,
    experiments=experiments,
    questions=questions,
    extra=True,
)
