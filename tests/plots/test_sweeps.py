"""Sweeps as a curve or a map."""

import numpy as np
import pytest
import xarray as xr
from drawn import error_bars, ticks
from matplotlib.figure import Figure

import localfields as lf


def dataset(rng, **axes):
    """Ratios of two neurons for four seeds at every value."""
    shape = (*map(len, axes.values()), 4, 2)
    values = xr.DataArray(rng.uniform(size=shape), dims=(*axes, "seed", "neuron"))
    return xr.Dataset({"ipr": values}, coords={**axes, "seed": np.arange(4)})


def test_one_axis_is_a_curve_in_the_order_of_its_values(ax, rng):
    data = dataset(rng, gain=[100.0, 1.0, 10.0])
    assert lf.plots.sweep(data, ax=ax) is ax
    ((_, _, x, y, low, high),) = error_bars(ax)
    ratios = data.ipr.values.mean(axis=2)[[1, 2, 0]]
    np.testing.assert_allclose([x, y], [[1, 10, 100], ratios.mean(axis=1)])
    np.testing.assert_allclose(high - low, 2 * ratios.std(axis=1))
    assert ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gain", "inverse participation ratio")


def test_names_are_evenly_spaced(ax, rng):
    lf.plots.sweep(dataset(rng, estimator=["shared", "orbit"]), ax=ax)
    assert ticks(ax.xaxis) == ([0, 1], ["shared", "orbit"])


def test_two_axes_are_a_map_the_first_across(ax, rng):
    data = dataset(rng, gain=[1.0, 10.0, 100.0], xi=[2.0, 3.0])
    lf.plots.sweep(data, ax=ax)
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), data.ipr.values.mean(axis=(2, 3)).T)
    assert image.origin == "lower" and image.get_clim() == (0, 1)
    assert ticks(ax.xaxis)[1] == ["1", "10", "100"] and ticks(ax.yaxis)[1] == ["2", "3"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gain", "xi")


def test_a_sweep_that_was_run_is_drawn(tmp_path):
    base = lf.Experiment(
        lf.Discrimination(*(lf.stimuli.Ising(8, coupling=j) for j in (0.3, 0.7))),
        method=lf.Solution(lf.theory.ExactIsing(frequencies=16), until=1.0),
    )
    result = lf.experiments.run_sweep(
        lf.Sweep(base, {"tolerance": [1e-4, 1e-5]}), lf.Store(tmp_path)
    )
    ((_, _, x, y, _, _),) = error_bars(lf.plots.sweep(result, ax=Figure))
    exact = {row["tolerance"]: row["ipr"] for row in result.table()}
    np.testing.assert_allclose(x, [1e-5, 1e-4])
    np.testing.assert_allclose(y, [exact[1e-5], exact[1e-4]])


def test_what_cannot_be_drawn_is_said(ax, rng):
    with pytest.raises(lf.InputError, match="no quantity 'lose'. It has: ipr"):
        lf.plots.sweep(dataset(rng, gain=[1.0, 2.0]), "lose", ax=ax)
    with pytest.raises(lf.InputError, match="one or two fields, got 3"):
        lf.plots.sweep(dataset(rng, gain=[1.0, 2.0], xi=[1.0, 2.0], k=[3.0, 4.0]), ax=ax)
