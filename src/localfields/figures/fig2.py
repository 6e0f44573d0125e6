"""Figure 2: samples, covariance and marginal of three data models; claims K1–K6 on kurtosis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import plots
from ..marginals import Algebraic, ErfNormal, TwoPoint
from ..plots._style import GREEN, new_figure
from ..stimuli import NLGP, Ising, Kur, Stimulus
from .base import Claim, PaperFigure, Results, printed, rounds_to, verdict

SITES, NUM_SAMPLES = 100, 10_000

# Long and short lengthscale of each; covariance and marginal are drawn for the long one.
MODELS: dict[str, tuple[Stimulus, Stimulus]] = {
    "Ising": (Ising((SITES,), coupling=1.2), Ising((SITES,), coupling=0.3)),
    "NLGP(0.01)": (NLGP((SITES,), xi=5.0, gain=0.01), NLGP((SITES,), xi=1.0, gain=0.01)),
    "Kur(5)": (Kur((SITES,), xi=5.0, k=5.0), Kur((SITES,), xi=1.0, k=5.0)),
}


def draw(results: Results) -> Any:
    """Three rows of four panels."""
    figure = new_figure(11, 6)
    axes = figure.subplots(3, 4, width_ratios=(1.3, 1.3, 1, 1))
    titles = ("long lengthscale", "short lengthscale", "covariance (long)", "marginal")
    for place, title in enumerate(titles):
        axes[0, place].set_title(title, fontsize=10)
    for number, (name, (long, short)) in enumerate(MODELS.items()):
        row = axes[number]
        x_long, x_short = (
            np.asarray(model.sample(seed, NUM_SAMPLES))
            for seed, model in ((2 * number, long), (2 * number + 1, short))
        )
        plots.sample(x_long[0], ax=row[0])
        plots.sample(x_short[0], color=GREEN, ax=row[1])
        limit = 1.15 * max(np.abs(x_long[0]).max(), np.abs(x_short[0]).max())
        for ax in row[:2]:
            ax.set_ylim(-limit, limit)
        plots.covariance(long, x_long, ax=row[2]).set_ylabel("")
        plots.marginal(long, x_long, ax=row[3])
        row[0].set_ylabel(name, fontsize=11)
    for ax in axes[1:, 2:].flat:
        ax.get_legend().remove()
    for ax in axes[:2].flat:
        ax.set_xlabel("")
    return figure


def sampled_kurtosis(k: float, repeats: int = 400, num: int = NUM_SAMPLES) -> np.ndarray:
    """Excess kurtosis of `num` independent Kur(k) values, many times over, as in a histogram."""
    generator = np.random.default_rng(round(1000 * k))
    marginal = Algebraic(k)
    kurtosis = np.empty(repeats)
    for repeat in range(repeats):
        x = marginal.quantile(generator.random(num))
        kurtosis[repeat] = np.mean(x**4) / np.mean(x**2) ** 2 - 3
    return kurtosis


def _sampled(k: float, published: float) -> str:
    kurtosis = sampled_kurtosis(k)
    low, middle, high = np.quantile(kurtosis, [0.05, 0.5, 0.95])
    return (
        f"the excess kurtosis of {NUM_SAMPLES:,} samples of Kur({k:g}), drawn {len(kurtosis)} "
        f"times, has median {middle:.2f}, 90% of it between {low:.2f} and {high:.2f}, and is at or "
        f"below the published {published:g} in {np.mean(kurtosis <= published):.0%} of the cases"
    )


def claims(results: Results) -> Sequence[Claim]:
    """K1–K6: exact kurtosis beside the published one."""
    from scipy.optimize import brentq

    exact = "closed form of the marginal"
    ising = TwoPoint().excess_kurtosis
    nlgp = ErfNormal(0.01).kurtosis
    noise = np.sqrt(24 / NUM_SAMPLES)  # standard error of the kurtosis of that many normal values
    kur5 = Algebraic(5.0).kurtosis
    light = [Algebraic(k).excess_kurtosis for k in (10.0, 30.0)]
    crossing: Any = brentq(lambda k: Algebraic(k).excess_kurtosis, 5.0, 7.0, xtol=1e-13)
    return [
        Claim(
            "K1",
            "Excess kurtosis of the Ising marginal",
            "−2",
            printed(ising, 0),
            verdict(ising == -2),
            "A ±1 variable has the least kurtosis there is.",
            exact,
        ),
        Claim(
            "K2",
            "Kurtosis of NLGP(0.01)",
            "2.99",
            f"{nlgp:.4f}",
            verdict(abs(nlgp - 2.99) < 2 * noise),
            f"The exact value is 3 to three digits; {NUM_SAMPLES:,} samples give it ± {noise:.2f}.",
            exact,
        ),
        Claim(
            "K3",
            "Kurtosis of Kur(5)",
            "3.86",
            f"{kur5:.4f}",
            verdict(rounds_to(kur5, 3.86, 2)),
            "The published value, an excess of 0.86, is one of samples, which mostly miss a "
            f"heavy tail: {_sampled(5.0, 0.86)}.",
            exact,
        ),
        Claim(
            "K4",
            "Excess kurtosis of Kur(10) and Kur(30)",
            "−0.93, −1.17",
            ", ".join(printed(value, 4) for value in light),
            verdict(rounds_to(light[0], -0.93, 2) and rounds_to(light[1], -1.17, 2)),
            "Light tails: samples and closed form agree.",
            exact,
        ),
        Claim(
            "K5",
            "Excess kurtosis of Kur(4) and Kur(3)",
            "3.28, 7.66",
            ", ".join("∞" if np.isinf(Algebraic(k).kurtosis) else "finite" for k in (4.0, 3.0)),
            "differs",
            "The fourth moment exists only for k > 4; what samples give grows with their number: "
            f"{_sampled(4.0, 3.28)}; {_sampled(3.0, 7.66)}.",
            exact,
        ),
        Claim(
            "K6",
            "k at which Kur has zero excess kurtosis",
            "between 5.8 and 5.9",
            f"{crossing:.4f}",
            verdict(5.8 < crossing < 5.9),
            "Root of the closed form.",
            exact,
        ),
    ]


FIGURE = PaperFigure(
    name="fig2",
    title="Figure 2: the data models",
    caption=(
        "Samples at a long and a short lengthscale, covariance at the long one, and the marginal "
        "of each data model. Blue curves are exact, orange are the samples. The covariances look "
        "alike; the marginals do not: two points, a normal distribution, and a heavy tail."
    ),
    setting=lambda scale: (
        f"N = {SITES}; Ising J = 1.2 and 0.3; NLGP(0.01) and Kur(5) at ξ = 5 and 1; "
        f"{NUM_SAMPLES:,} samples."
    ),
    draw=draw,
    claims=claims,
)
