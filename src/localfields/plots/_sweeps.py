"""What came of a sweep: a curve over one parameter, or a map over two."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..experiments import SweepResult
from ._style import BLUE, SMALL, Axes, AxesLike, make_small, new_axes


def sweep(result: SweepResult | Any, quantity: str = "ipr", *, ax: AxesLike = None) -> Axes:
    """Draw a quantity of a sweep: a curve over one swept field, a phase diagram over two.

    It is averaged over neurons and seeds; the bars of a curve are the standard deviation over
    seeds. Points that are missing are left out.

    Args:
        result: What `run_sweep` returned, or its `dataset()`.
        quantity: One value per point: `ipr`, `loss`, `accuracy`, or another of the dataset.
        ax: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        InputError: If the dataset has no such quantity, or the sweep has no or more than two axes.

    Example:
        >>> import localfields as lf, numpy as np, xarray as xr
        >>> values = xr.DataArray(np.eye(2)[..., None], dims=("gain", "xi", "seed"))
        >>> coordinates = {"gain": [1.0, 10.0], "xi": [2.0, 3.0], "seed": [0]}
        >>> ax = lf.plots.sweep(xr.Dataset({"ipr": values}, coords=coordinates))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('gain', 'xi')
    """
    data = result.dataset(over_time=False) if isinstance(result, SweepResult) else result
    if quantity not in data:
        names = ", ".join(sorted(map(str, data.data_vars)))
        raise InputError(f"The sweep has no quantity {quantity!r}. It has: {names}.")
    values = data[quantity]
    values = values.mean([name for name in ("neuron",) if name in values.dims])
    names = [str(name) for name in values.dims if name != "seed"]
    label = {"ipr": "inverse participation ratio"}.get(quantity, quantity)
    if len(names) not in (1, 2):
        raise InputError(f"This plot is for sweeps over one or two fields, got {len(names)}.")
    axes = new_axes(ax)
    mean = values.mean("seed")
    ticks = [_labels(values[name].values) for name in names]
    if len(names) == 1:
        x = values[names[0]].values
        # Texts, such as the names of estimators, are evenly spaced.
        places = x if np.issubdtype(x.dtype, np.number) else np.arange(len(x))
        order = np.argsort(places)
        deviation = values.std("seed").values
        axes.errorbar(
            places[order], mean.values[order], deviation[order], fmt="o-", color=BLUE, capsize=3
        )
        if places is not x:
            axes.set_xticks(places, ticks[0])
        elif (x > 0).all() and x.max() > 20 * x.min():
            axes.set_xscale("log")
        axes.set(xlabel=names[0], ylabel=label)
    else:
        image = axes.imshow(mean.values.T, origin="lower", aspect="auto", cmap="viridis")
        axes.set_xticks(range(len(ticks[0])), ticks[0])
        axes.set_yticks(range(len(ticks[1])), ticks[1])
        axes.set(xlabel=names[0], ylabel=names[1])
        if quantity == "ipr":
            image.set_clim(0, 1)
        bar = axes.figure.colorbar(image, ax=axes)
        bar.set_label(label, fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
    make_small([axes])
    return axes


def _labels(values: np.ndarray) -> list[str]:
    return [f"{x:.3g}" if np.issubdtype(values.dtype, np.number) else str(x) for x in values]
