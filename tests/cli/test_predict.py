"""`localfields predict`: report and file are the Python call's, pictures show the field,
mistakes are one line.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

import localfields as lf
from localfields.cli import main
from localfields.cli.predict import draw_field
from localfields.trajectory import localized_from

LINE = "predict kur --shape 12 --k 10 --xi 0.5,1 --starts 3 --seed 5"


@pytest.fixture(scope="module")
def asked():
    """The task of `LINE`, and what Python says of it."""
    task = lf.Discrimination(*(lf.stimuli.Kur((12,), k=10.0, xi=xi) for xi in (0.5, 1.0)))
    return task, lf.predict(task, starts=3, seed=5)


# -- what is told and written ----------------------------------------------------------------------


def test_report_and_file_are_those_of_the_python_call(asked, folder, capsys):
    task, wanted = asked
    main([*LINE.split(), "--out", "x.json", "--plot"])
    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out
    assert out.startswith(f"{wanted}\n\n")  # 160 columns: no line is broken
    assert out.endswith("wrote x.json\ndrew x.png\n")
    shown = draw_field(wanted.field, 160)
    assert "\n".join(["first of 3 starts:", *shown, "wrote"]) in out

    text = (folder / "x.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert repr(lf.from_json(found.pop("task"))) == repr(task)
    assert (found.pop("starts"), found.pop("seed"), found.pop("localfields")) == (
        3,
        5,
        lf.__version__,
    )
    assert set(found) == {field.name for field in dataclasses.fields(wanted)} - {"flow", "task"}
    np.testing.assert_array_equal(found.pop("field"), wanted.field)
    np.testing.assert_array_equal(found.pop("peak"), wanted.peak)
    for name, value in found.items():
        assert value == plain(getattr(wanted, name)), name
    assert sorted(path.name for path in folder.iterdir()) == ["x.json", "x.png"]
    assert matplotlib.image.imread("x.png")[..., :3].std() > 0.05


def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return list(value) if isinstance(value, tuple) else value


def test_every_option_reaches_the_prediction(quick):
    options = "--labels 0,2,1 --proportions 0.25,0.25,0.5 --loss absolute --l1 0.1 --l2 0.2 --starts 7 --seed 9"
    main(
        [
            "predict",
            "nlgp",
            "--shape",
            "12",
            "--xi",
            "0.3,0.5,1",
            "--gain",
            "3,4,5",
            *options.split(),
        ]
    )
    ((task, settings),) = quick
    assert [(one.xi, one.gain, one.shape) for one in task.stimuli] == [
        (0.3, 3, (12,)),
        (0.5, 4, (12,)),
        (1, 5, (12,)),
    ]
    assert (task.labels, task.proportions) == ((0.0, 2.0, 1.0), (0.25, 0.25, 0.5))
    assert (task.loss, task.l1, task.l2) == ("absolute", 0.1, 0.2)
    assert settings == {"starts": 7, "seed": 9}


@pytest.mark.parametrize("columns", [40, 50, 80])
def test_lines_fit_the_terminal(columns, quick, asked, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    main(LINE.split())
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    report = out.split("\n\n")[0]
    assert " ".join(report.split()) == " ".join(str(asked[1]).split())
    assert {len(line) - len(line.lstrip()) for line in report.splitlines()} == {
        0,
        19,
    }  # under the second column


def test_a_picture_takes_the_name_of_the_stimulus(quick, folder, capsys):
    main([*LINE.split(), "--plot"])
    assert capsys.readouterr().out.endswith("drew kur.png\n")
    assert [path.name for path in folder.iterdir()] == ["kur.png"]


@pytest.mark.parametrize("options", ["--loss absolute", "--labels one-hot", "--loss cross-entropy"])
def test_no_theory_is_an_answer(options, folder, capsys):
    main([*LINE.split(), *options.split(), "--out", "x.json", "--plot"])
    out, err = capsys.readouterr()
    assert (
        err == "" and out.startswith("verdict            undecided") and "No theory covers" in out
    )
    assert "predicted field" not in out
    found = json.loads((folder / "x.json").read_text(encoding="utf-8"))
    assert (found["verdict"], found["field"], found["ipr"]) == ("undecided", None, None)
    assert (folder / "x.png").stat().st_size > 10_000


def test_infinite_numbers_are_legal_json(folder):
    main("predict kur --shape 12 --k 3 --xi 0.5,1 --loss absolute --out x.json".split())
    found = json.loads((folder / "x.json").read_text(encoding="utf-8"))
    assert (float(found["excess_kurtosis"]), found["tail_index"], found["onset"]) == (
        math.inf,
        3.0,
        None,
    )


# -- pictures of characters ------------------------------------------------------------------------


def dots_of(lines):
    """The dots of a picture from top to bottom, in every one of their columns."""
    rows = [line[10:] for line in lines[:-2]]
    halves = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]]
    return [
        [bool((ord(row[cell]) - 0x2800) & bit) for row in rows for bit in half]
        for cell in range(len(rows[0]))
        for half in halves
    ]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("sites", "per_site"), [(10, 6), (40, 3), (100, 1)])
def test_bars_are_as_long_as_weights(sign, sites, per_site):
    x = np.arange(sites) / sites
    field = sign * (np.exp(-100 * (x - 0.4) ** 2) - 0.25 * np.exp(-100 * (x - 0.8) ** 2))
    lines = draw_field(field, 80)
    columns = dots_of(lines)
    length = np.array([sum(dots) for dots in columns])[: sites * per_site].reshape(sites, per_site)
    assert (length == length[:, :1]).all()
    wanted = np.abs(field) / np.ptp(field) * 32
    assert np.abs(length[:, 0] - np.maximum(wanted, 1)).max() <= 0.5 + 1e-9
    # Those of one sign end where those of the other begin.
    first = np.array([dots.index(True) for dots in columns])[: sites * per_site : per_site]
    up = field >= 0
    axis = (first + length[:, 0])[up]
    assert len(set(axis)) == 1 and set(first[~up]) == set(axis)
    assert (
        lines[0].split()[0] == f"{field.max():.3g}" and lines[-3].split()[0] == f"{field.min():.3g}"
    )
    assert lines[-1].split() == ["site", "0", str(sites - 1)]
    assert max(map(len, lines)) <= 70


def test_a_single_weight_among_many_sites_is_seen():
    field = np.zeros(1000)
    field[617] = -2.0
    columns = dots_of(draw_field(field, 80))
    longest = max(columns, key=sum)
    assert sum(longest) == 32 and sum(map(sum, columns)) == 32 + len(columns) - 1
    assert columns.index(longest) == 617 // math.ceil(1000 / 120)


@pytest.mark.parametrize(
    "field", [np.zeros(7), np.full(7, 0.3), np.full(7, -0.3), np.zeros((3, 4))]
)
def test_flat_fields_are_drawn(field):
    assert len(draw_field(field, 80)) > 2


def test_shades_are_sizes():
    field = np.array([[0.0, 0.1, 0.2, 0.5], [0.8, 1.0, -0.25, -1.0]])
    lines = draw_field(field, 80)
    assert lines[1:3] == ["  │    ░░▒▒│", "  │▓▓██--##│"]
    assert lines[-1] == "  from blank (0) to █ (1) or # (-1)"
    assert "#" not in "".join(draw_field(np.abs(field), 80))


def test_a_large_torus_is_coarse_and_shows_its_peak():
    field = np.zeros((100, 50, 3))
    field[71, 22, 1] = 3.0
    lines = draw_field(field, 80)
    rows = [line[3:-1] for line in lines[1:-2]]
    assert (len(rows), len(rows[0])) == (25, 2 * 13)  # groups of 4 × 4
    places = [
        (r, c // 2)
        for (r, row), c in itertools.product(enumerate(rows), range(0, 26, 2))
        if row[c] == "█"
    ]
    assert places == [(71 // 4, 22 // 4)] and max(map(len, lines)) <= 80


def test_a_field_that_is_not_finite_is_not_drawn():
    assert draw_field(np.array([1.0, math.nan]), 80) == ["  not finite: nothing to draw"]


# -- the page --------------------------------------------------------------------------------------


def boxes(figure):
    """Where on the page words and numbers are."""
    figure.draw_without_rendering()
    texts = [figure._suptitle]
    for ax in figure.axes:
        if not ax.axison:
            continue
        texts += [
            ax.title,
            ax.xaxis.label,
            ax.yaxis.label,
            *(ax.get_legend().get_texts() if ax.get_legend() else []),
        ]
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            texts += [label for place, label in ticks if min(limits) <= place <= max(limits)]
    return {
        text: text.get_window_extent() for text in texts if text.get_text() and text.get_visible()
    }


def assert_legible(figure):
    found = boxes(figure)
    assert len(found) > 20
    for one, box in found.items():
        assert (
            box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        ), one
    for (one, box), (other, second) in itertools.combinations(found.items(), 2):
        apart = (
            box.x1 <= second.x0 or second.x1 <= box.x0 or box.y1 <= second.y0 or second.y1 <= box.y0
        )
        assert apart, (one, other)


def made_up(prediction, task, ends):
    """The same prediction with a flow of another lattice: starts whose peak stands out by these
    factors.
    """
    shape = task.shape
    times = np.linspace(0, 50, 21)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((len(ends), 1, 1, *shape))
    bump = np.zeros(shape)
    bump.flat[bump.size // 2] = 1.0
    growth = np.asarray(ends)[:, None] * (times / times[-1])[None, :]
    weights = noise + (growth.reshape(len(ends), -1, 1, *[1] * len(shape))) * bump
    flow = dataclasses.replace(
        prediction.flow,
        times=times,
        steps=np.arange(21),
        initial=weights[:, 0],
        final=weights[:, -1],
        series={"weights": weights},
    )
    kurtosis = task.stimuli[-1].marginal().excess_kurtosis
    return dataclasses.replace(
        prediction, task=task, flow=flow, field=weights[0, -1, 0], excess_kurtosis=kurtosis
    )


TASKS = {
    "a torus": lambda s: [s.NLGP((6, 8), gain=100.0, xi=xi) for xi in (0.3, 0.5)],
    "heavy tails": lambda s: [s.Kur((12,), k=3.0, xi=xi) for xi in (0.5, 1.0)],
    "atoms of unlike weight": lambda s: [
        s.BlockPulse((12,), length=n, coding="zero-one") for n in (2, 3)
    ],
    "five classes": lambda s: [s.Ising((12,), coupling=j) for j in (0.1, 0.2, 0.3, 0.4, 0.5)],
    "elliptical": lambda s: [s.StudentT((12,), xi=xi) for xi in (0.5, 1.0)],
    "normal": lambda s: [s.Gaussian((12,), xi=xi) for xi in (0.5, 1.0)],
}


def prediction_figure(prediction):
    """The figure that the command draws."""
    return lf.plots.prediction(prediction, ax=Figure)[0].figure


@pytest.mark.parametrize("name", TASKS)
def test_no_words_of_the_page_overlap(name, asked):
    task = lf.Discrimination(*TASKS[name](lf.stimuli))
    figure = prediction_figure(made_up(asked[1], task, ends=[9.0, 0.0, 6.0]))
    assert_legible(figure)
    covariance, law, amplifier, fields, ipr = figure.axes[:5]
    assert len(covariance.get_legend().get_texts()) == len(task.stimuli)
    assert bool(fields.images) == (len(task.shape) == 2) and bool(fields.collections) == (
        len(task.shape) == 1
    )
    names = [text.get_text() for text in ipr.get_legend().get_texts()]
    assert {"ends localized", "ends otherwise", "localization threshold"} <= set(names)
    assert localized_from(task.size) in [line.get_ydata()[0] for line in ipr.lines]
    kurtosis = task.stimuli[-1].marginal().excess_kurtosis
    told = law.get_title().split()[-1].replace("−", "-").replace("∞", "inf")
    assert math.isclose(float(told), kurtosis, rel_tol=0.01, abs_tol=1e-5)
    shaded = {text.get_text() for text in amplifier.get_legend().get_texts()} & {
        "super-linear",
        "sub-linear",
    }
    wanted = {"heavy tails": {"sub-linear"}, "elliptical": {"sub-linear"}, "normal": set()}
    assert shaded == wanted.get(name, {"super-linear"})


def test_the_page_of_the_flow(asked):
    task, prediction = asked
    figure = prediction_figure(prediction)
    assert_legible(figure)
    title = figure._suptitle.get_text()
    assert title.startswith(prediction.verdict.upper())
    assert " ".join(title.split("\n")[1:]).replace("−", "-") == prediction.reason
    first = figure.axes[0].lines[1:]
    for line, stimulus in zip(first, task.stimuli, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), stimulus.covariance()[:7])
    last = figure.axes[3].collections[0].get_segments()[-1]
    np.testing.assert_array_equal(last[:, 1], prediction.field)


def test_words_that_overlap_are_caught(asked):
    figure = prediction_figure(asked[1])
    figure.axes[0].set_title(
        "covariance of all the classes that are to be told apart, in words that run on"
    )
    with pytest.raises(AssertionError):
        assert_legible(figure)


def test_the_page_without_a_flow_has_one_row(asked):
    figure = prediction_figure(
        dataclasses.replace(asked[1], flow=None, field=None, reason="word " * 60)
    )
    assert len(figure.axes) == 3
    assert_legible(figure)


# -- mistakes --------------------------------------------------------------------------------------

MISTAKES = {
    "predict kru --xi 1,3": "Did you mean 'kur'?",
    "predict kur": "The classes are identical. Give one of the stimulus's numbers a value per class",
    "predict kur --xi 3": "a value per class, for example --",
    "predict kur --k 3,4 --xi 1,2,3": "number of classes: --xi has 3 values, --k has 2 values.",
    "predict kur --k 2 --xi 0.5,1": "`k` must be above 2, got 2.0",
    "predict kur --xi 0.5,-1": "`xi` must be positive, got -1.0",
    "predict kur --xi 0.5,": "`xi` must be a number, got ''",
    "predict kur --xi 0.5,1 --shape forty": "`shape` must be",
    "predict kur --xi 0.5,1 --labels first": "Unknown labels 'first'",
    "predict kur --xi 0.5,1 --labels 0,1,2": "`labels` must be one number for each of the 2 classes",
    "predict kur --xi 0.5,1 --proportions 0,1": "`proportions` must be positive",
    "predict kur --xi 0.5,1 --loss hinge": "Unknown `loss` 'hinge'",
    "predict kur --xi 0.5,1 --l1 -1": "`l1` must be zero or positive",
    "predict kur --xi 0.5,1 --starts 0": "`starts` must be at least 1, got 0.",
    "predict kur --xi 0.5,1 --starts many": "`starts` must be a whole number, got 'many'.",
    "predict kur --xi 0.5,1 --seed -1": "`seed` must be at least 0, got -1.",
    "predict kur --xi 0.5,1 --strats 3": "Did you mean '--starts'?",
    "predict kur --xi 0.5,1 --steps 3": "Unknown option of `localfields predict kur` '--steps'",
    "predict kur --xi 0.5,1 --out x.npz": "its name must end in .json or .html",
    "predict kur --xi 0.5,1 --out no/such/x.json": "the folder no/such does not exist",
    "predict kur --xi 0.5,1 --out old.json": "Add --overwrite",
    "predict kur --xi 0.5,1 --plot --out drawn.json": "drawn.png",
    "predict ising --coupling 0.3,0.7 --shape 4x4": "lattice of 1 axis",
    "predict single-pulse --shortest 2,9": "Pulses of length 9 to 8 do not fit",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_one_line(line, folder, quick, capsys):
    (folder / "old.json").write_text("mine")
    (folder / "drawn.png").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    assert (stop.value.code, out, quick) == (2, "", [])  # and found before the work
    assert err.startswith("localfields: ") and len(err.splitlines()) == 1 and MISTAKES[line] in err
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "old.json": "mine",
        "drawn.png": "mine",
    }


def test_a_file_is_replaced_when_asked(quick, folder):
    (folder / "x.json").write_text("mine")
    main([*LINE.split(), "--out", "x.json", "--overwrite"])
    assert json.loads((folder / "x.json").read_text(encoding="utf-8"))["verdict"]


def test_a_page_that_fails_leaves_nothing_half_drawn(quick, folder, monkeypatch):
    def half(figure, path, **options):
        path.write_bytes(b"half")
        raise RuntimeError("a bug")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    with pytest.raises(RuntimeError):
        main([*LINE.split(), "--plot"])
    assert list(folder.iterdir()) == []


def test_help(capsys):
    main(["predict", "--help"])
    assert "localfields predict kur --k 10 --xi 1,3" in capsys.readouterr().out
    main(["predict", "kur", "--help"])
    out = capsys.readouterr().out
    assert all(
        f"--{name}" in out
        for name in ("xi", "k", "labels", "loss", "starts", "seed", "out", "plot")
    )


def test_the_compiled_flow_is_kept_between_runs(run, folder, monkeypatch):
    monkeypatch.delenv(
        "EQX_ON_ERROR", raising=False
    )  # with checks of the integrator's own it could not be kept
    done = run(
        *"predict gaussian --shape 6 --xi 0.5,1 --starts 1".split(),
        env={"XDG_CACHE_HOME": str(folder), "LOCALFIELDS_CACHE": ""},
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.rglob("jit__integrate_members*"))
