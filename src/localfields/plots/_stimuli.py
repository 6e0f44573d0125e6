"""Stimuli: samples, covariance, marginal and the amplifier that follows from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..lattice import spectrum
from ..marginals import Marginal
from ..stimuli import Stimulus
from ..theory.responses.amplifier import SLOPE, Amplifier
from ._fields import sample
from ._style import (
    BLUE,
    GRAY,
    ORANGE,
    SMALL,
    Axes,
    AxesLike,
    add_legend,
    make_small,
    new_axes,
    new_panels,
)

LARGEST_SUPPORT = 12  # values of a marginal that is drawn as bars


def stimulus(
    stimulus: Stimulus, samples: Any = None, *, num: int = 1000, seed: int = 0, ax: Any = None
) -> np.ndarray:
    """Draw four samples of a stimulus, its covariance and its marginal.

    Args:
        stimulus: The stimulus.
        samples: Samples (sample, site) that were drawn before; `num` new ones by default.
        num: Number of samples.
        seed: Seed for the samples.
        ax: Six axes (four samples, covariance, marginal); a new figure by default.

    Returns:
        The six axes.

    Example:
        >>> import localfields as lf
        >>> axes = lf.plots.stimulus(lf.stimuli.Ising((12,), coupling=0.7), num=50)
        >>> [panel.get_title() for panel in axes[3:]]
        ['sample 4', 'covariance', 'marginal, excess kurtosis −2']
    """
    axes = new_panels(ax, ["abef", "cdef"], (10, 4.6))
    values = np.asarray(stimulus.sample(seed, num) if samples is None else samples)
    for place, panel in enumerate(axes[:4]):
        if place >= len(values):
            panel.set_axis_off()
            continue
        sample(values[place], stimulus.shape, ax=panel)
        panel.set_title(f"sample {place + 1}", fontsize=9)
    covariance(stimulus, values, ax=axes[4]).set_title("covariance", fontsize=9)
    axes[4].set_ylabel("")
    marginal(stimulus, values, ax=axes[5])
    exact = stimulus.marginal()
    kurtosis = "" if exact is None else f"{round(exact.excess_kurtosis, 6) + 0:.3g}"
    kurtosis = kurtosis.replace("inf", "∞").replace("-", "−")
    title = f"marginal, excess kurtosis {kurtosis}" if kurtosis else "marginal"
    axes[5].set_title(title, fontsize=9)
    if ax is None or callable(ax):
        axes[0].figure.suptitle(repr(stimulus)[:120], fontsize=9)
    return axes


def covariance(stimulus: Stimulus, samples: Any = None, *, ax: AxesLike = None) -> Axes:
    """Draw the covariance against distance along the first axis, exact and estimated.

    A stimulus without translation symmetry has a covariance matrix, which is drawn as a picture.

    Args:
        stimulus: The stimulus.
        samples: Samples (sample, site), whose covariance is drawn as dots.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> ax = lf.plots.covariance(lf.stimuli.Ising((12,), coupling=0.7))
        >>> ax.lines[-1].get_ydata()[:3].round(3).tolist()
        [1.0, 0.607, 0.371]
    """
    axes = new_axes(ax)
    exact = stimulus.covariance()
    if exact.shape != stimulus.shape:
        limit = float(np.abs(exact).max())
        matrix = exact.reshape(stimulus.size, stimulus.size)
        axes.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.locator_params(integer=True)
        axes.set_xlabel("site")
        axes.set_ylabel("site")
        make_small([axes])
        return axes
    n = stimulus.shape[0]
    distances = np.arange(n // 2 + 1)
    axes.axhline(0, color=GRAY, lw=0.5)
    if samples is not None:
        estimate = _sample_covariance(np.asarray(samples), stimulus.shape)[distances]
        axes.plot(distances, estimate, "o", color=ORANGE, ms=3, mew=0, label="samples")
    line = exact.reshape(n, -1)[distances, 0]
    axes.plot(distances, line, color=BLUE, lw=1.4, label="exact")
    axes.set_xlabel("distance (sites)")
    axes.set_ylabel("covariance")
    axes.locator_params(axis="x", integer=True)
    axes.legend(frameon=False, fontsize=SMALL)
    make_small([axes])
    return axes


def _sample_covariance(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Covariance with a site at each distance along the first axis, averaged over all shifts."""
    centered = (x - x.mean()).reshape(-1, *shape)
    axes = tuple(range(1, centered.ndim))
    power = (np.abs(np.fft.fftn(centered, axes=axes)) ** 2).mean(axis=0) / x.shape[1]
    return spectrum(power).reshape(shape[0], -1)[:, 0] / x.shape[1]


def marginal(stimulus: Stimulus, samples: Any, *, bins: int = 60, ax: AxesLike = None) -> Axes:
    """Draw a histogram of all sampled values over the exact probability of each bin.

    Args:
        stimulus: The stimulus.
        samples: Samples, (sample, site).
        bins: Number of bins.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> kur = lf.stimuli.Kur((12,), xi=1, k=5)
        >>> ax = lf.plots.marginal(kur, kur.sample(0, 100))
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['exact', 'samples']
    """
    axes = new_axes(ax)
    samples = np.asarray(samples)
    low, high = np.quantile(samples, [0.001, 0.999])
    margin = 0.05 * (high - low)
    edges = np.linspace(low - margin, high + margin, bins + 1)
    width = edges[1] - edges[0]
    counts, _ = np.histogram(samples, edges)
    heights = counts / (samples.size * width)
    middle = (edges[1:] + edges[:-1]) / 2
    axes.bar(middle, heights, width, color=ORANGE, alpha=0.6, lw=0, label="samples")
    marginal = stimulus.marginal()
    if marginal is not None:
        axes.stairs(np.diff(marginal.cdf(edges)) / width, edges, color=BLUE, lw=1.2, label="exact")
    axes.set_xlabel("value of a site")
    axes.set_yticks([])
    make_small([axes])
    add_legend(axes)
    return axes


def density(marginal: Marginal, *, color: str = BLUE, bins: int = 240, ax: AxesLike = None) -> Axes:
    """Draw the density of a marginal beside the normal density of the same mean and variance.

    A marginal of at most 12 values is drawn as their probabilities.

    Args:
        marginal: Distribution of one site.
        color: Color of the density.
        bins: Number of bins; the density is the exact probability of each over its width.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> lf.plots.density(lf.marginals.Algebraic(k=10)).get_ylabel()
        'density'
    """
    axes = new_axes(ax)
    quantiles = marginal.quantile(np.linspace(0.001, 0.999, 999))
    atoms = np.unique(quantiles)
    axes.set_xlabel("value of a site")
    if len(atoms) <= LARGEST_SUPPORT:
        mass = marginal.cdf(atoms) - marginal.cdf(np.nextafter(atoms, -np.inf))
        axes.vlines(atoms, 0, mass, color=color, lw=2)
        axes.plot(atoms, mass, "o", color=color, ms=5)
        margin = 0.4 * float(np.ptp(atoms)) or 1.0
        axes.set_xlim(atoms[0] - margin, atoms[-1] + margin)
        axes.set_ylim(0, 1.15 * float(mass.max()))
        axes.set_ylabel("probability")
        make_small([axes])
        return axes
    margin = 0.05 * (quantiles[-1] - quantiles[0])
    edges = np.linspace(float(quantiles[0] - margin), float(quantiles[-1] + margin), bins + 1)
    heights = np.diff(marginal.cdf(edges)) / (edges[1] - edges[0])
    z = (np.linspace(edges[0], edges[-1], 300) - marginal.mean) / marginal.sd
    normal = np.exp(-(z**2) / 2) / (marginal.sd * math.sqrt(2 * math.pi))
    axes.stairs(heights, edges, fill=True, color=color, alpha=0.35, lw=0)
    axes.plot((edges[1:] + edges[:-1]) / 2, heights, color=color, lw=1.2, label="marginal")
    x = marginal.mean + marginal.sd * z
    axes.plot(x, normal, color="black", ls=":", lw=1, label="normal")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("density")
    make_small([axes])
    add_legend(axes)
    return axes


def amplifier(marginal: Marginal, *, ax: AxesLike = None) -> Axes:
    """Draw the amplifier φ(a) of a marginal beside that of normal data, the line √(2/π) a.

    It is shaded where the marginal amplifies more (orange) or less (blue) than normal data.

    Args:
        marginal: Distribution of one site.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Example:
        >>> import localfields as lf
        >>> ax = lf.plots.amplifier(lf.marginals.TwoPoint())
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['super-linear', 'φ(a)', 'normal: √(2/π) a']
    """
    axes = new_axes(ax)
    a = np.linspace(0, 1, 401)
    value, line = Amplifier(marginal)(a), SLOPE * a
    for part, color, label in (
        (value > line, ORANGE, "super-linear"),
        (value < line, BLUE, "sub-linear"),
    ):
        # Rounding errors around a line are no amplification.
        if np.abs(value - line)[part].max(initial=0.0) > 1e-6:
            style = {"color": color, "alpha": 0.4, "lw": 0, "label": label}
            axes.fill_between(a, line, value, where=part, interpolate=True, **style)
    axes.plot(a, value, color="black", lw=1.4, label="φ(a)")
    axes.plot(a, line, color="black", lw=1, ls=":", label="normal: √(2/π) a")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.05 * max(SLOPE, float(value.max())))
    axes.set_xlabel("correlation a of a site with the preactivation")
    axes.set_ylabel("amplifier φ(a)")
    make_small([axes])
    axes.legend(frameon=False, fontsize=SMALL, loc="upper left")
    return axes
