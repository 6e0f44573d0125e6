"""What all plots have in common: axes in and axes out, and nothing global."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import localfields as lf
from localfields.plots._style import save_picture

from .canned import canned_trajectory

PLOTS = {
    name: plot
    for name, plot in vars(lf.plots).items()
    if inspect.isfunction(plot) and not name.startswith("_")
}


@pytest.fixture(scope="module")
def drawings():
    """Every plot that needs no more than a run or a stimulus."""
    rng = np.random.default_rng(0)
    run = canned_trajectory(
        rng.normal(size=(2, 4, 3, 8)),
        loss=rng.uniform(size=(2, 4)),
        biases=rng.normal(size=(2, 4, 3)),
    )
    spins = lf.stimuli.Ising((8,), coupling=0.7)
    return {
        "amplifier": (lf.marginals.TwoPoint(),),
        "comparison": (run, run),
        "covariance": (spins,),
        "density": (lf.marginals.TwoPoint(),),
        "fields": (run,),
        "final_fields": (run,),
        "ipr": (run,),
        "loss": (run,),
        "marginal": (spins, spins.sample(0, 5)),
        "overview": (run,),
        "pictures": (rng.normal(size=(3, 2, 2)),),
        "populations": (run,),
        "sample": (rng.normal(size=8),),
        "spectrum": (run,),
        "stimulus": (spins,),
        "tuning": (canned_trajectory(rng.normal(size=(1, 1, 3, 6, 6))),),
    }


def test_all_plots_are_tried(drawings):
    assert {*drawings, "prediction", "sweep"} == set(PLOTS)  # those two have files of their own
    assert all(plot.__module__.startswith("localfields.plots._") for plot in PLOTS.values())


@pytest.mark.parametrize("name", sorted({*PLOTS} - {"prediction", "sweep"}))
def test_a_new_figure_is_made_by_pyplot_only_where_no_axes_are_given(drawings, name):
    pyplot.close("all")
    plot, arguments = PLOTS[name], drawings[name]
    plot(*arguments, ax=Figure)
    assert not pyplot.get_fignums()
    axes = plot(*arguments)
    assert len(pyplot.get_fignums()) == 1
    every = np.ravel(np.asarray(axes, dtype=object))
    assert all(isinstance(panel, Axes) for panel in every)
    assert isinstance(axes, Axes) or len(every) > 1
    pyplot.close("all")


def test_the_number_of_axes_must_be_that_of_the_panels(drawings):
    with pytest.raises(lf.InputError, match="needs 4 axes, got 3"):
        lf.plots.comparison(*drawings["comparison"], ax=Figure().subplots(1, 3))


def test_a_picture_is_written(drawings, tmp_path):
    save_picture(tmp_path / "x.png", lf.plots.overview, *drawings["overview"])
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_matplotlib_is_imported_when_something_is_drawn():
    code = "import sys, localfields as lf; lf.plots.fields; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False"]
