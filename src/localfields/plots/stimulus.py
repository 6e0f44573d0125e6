"""Pictures of a stimulus: samples, covariance, marginal, with the exact curve over the sampled one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..lattice import spectrum
from ..stimuli import Stimulus

# Okabe and Ito's palette: told apart by people with any kind of color vision.
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#999999"


def draw_sample(ax: Any, x: np.ndarray, shape: tuple[int, ...], color: str = BLUE) -> None:
    """One sample: a curve on a ring, a picture on a torus (its first two axes)."""
    if len(shape) == 1:
        ax.axhline(0, color=GRAY, lw=0.5)
        ax.plot(
            np.arange(shape[0]),
            x,
            color=color,
            lw=1.2,
            drawstyle="steps-mid" if shape[0] <= 200 else "default",
        )
        ax.set_xlim(-0.5, shape[0] - 0.5)
        ax.locator_params(axis="x", integer=True)
    else:
        picture = x.reshape(*shape[:2], -1)[:, :, 0]
        limit = float(np.abs(picture).max()) or 1.0
        ax.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])


def draw_covariance(ax: Any, stimulus: Stimulus, x: np.ndarray | None = None) -> None:
    """Exact covariance against displacement (along the first axis), and its estimate from samples as dots."""
    exact = stimulus.covariance()
    if exact.shape != stimulus.shape:
        limit = float(np.abs(exact).max())
        ax.imshow(
            exact.reshape(stimulus.size, stimulus.size), cmap="RdBu_r", vmin=-limit, vmax=limit
        )
        ax.locator_params(integer=True)
        ax.set_xlabel("site")
        return
    n = stimulus.shape[0]
    line = exact.reshape(n, -1)[:, 0]
    half = np.arange(n // 2 + 1)
    ax.axhline(0, color=GRAY, lw=0.5)
    if x is not None:
        ax.plot(
            half,
            _sample_covariance(x, stimulus.shape)[half],
            "o",
            color=ORANGE,
            ms=3,
            mew=0,
            label="samples",
        )
    ax.plot(half, line[half], color=BLUE, lw=1.4, label="exact")
    ax.set_xlabel("distance")


def _sample_covariance(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    centered = (x - x.mean()).reshape(-1, *shape)
    axes = tuple(range(1, centered.ndim))
    power = (np.abs(np.fft.fftn(centered, axes=axes)) ** 2).mean(axis=0) / x.shape[1]
    return spectrum(power).reshape(shape[0], -1)[:, 0] / x.shape[1]


def draw_marginal(ax: Any, stimulus: Stimulus, x: np.ndarray, bins: int = 60) -> None:
    """Histogram of all sampled values, and the exact probability of each bin."""
    low, high = np.quantile(x, [0.001, 0.999])
    margin = 0.05 * (high - low)
    edges = np.linspace(low - margin, high + margin, bins + 1)
    width = edges[1] - edges[0]
    counts, _ = np.histogram(x, edges)
    middle = (edges[1:] + edges[:-1]) / 2
    ax.bar(middle, counts / (x.size * width), width, color=ORANGE, alpha=0.6, lw=0, label="samples")
    law = stimulus.marginal()
    if law is not None:
        ax.stairs(np.diff(law.cdf(edges)) / width, edges, color=BLUE, lw=1.2, label="exact")
    ax.set_xlabel("value")
    ax.set_yticks([])


def save_overview(stimulus: Stimulus, x: np.ndarray, path: Path) -> None:
    """A page with four samples, the covariance and the marginal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 4)
    for place in range(min(4, len(x))):
        ax = figure.add_subplot(grid[place // 2, place % 2])
        draw_sample(ax, x[place], stimulus.shape)
        ax.set_title(f"sample {place + 1}", fontsize=9)
    ax = figure.add_subplot(grid[:, 2])
    draw_covariance(ax, stimulus, x)
    ax.set_title("covariance", fontsize=9)
    if ax.lines:  # a matrix is a picture, with nothing to tell apart
        ax.legend(frameon=False, fontsize=8)
    ax = figure.add_subplot(grid[:, 3])
    draw_marginal(ax, stimulus, x)
    law = stimulus.marginal()
    tail = (
        ""
        if law is None
        else f", excess kurtosis {round(law.excess_kurtosis, 6) + 0:.3g}".replace("inf", "∞")
    )
    ax.set_title(f"marginal{tail}", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    figure.suptitle(repr(stimulus)[:120], fontsize=9)
    figure.savefig(path, dpi=150)
