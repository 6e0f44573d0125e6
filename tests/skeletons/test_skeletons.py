"""Every skeleton, completed as a newcomer would and kept outside the package, does what its
first lines promise.
"""

import ast
import importlib
import json
import math
import re
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields import _registry, _start
from localfields.analysis import METRICS
from localfields.cli import main
from localfields.experiments import Experiment, Solution, Training
from localfields.figures import all_figures
from localfields.figures.make import make

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "skeletons"
MARK = "  # FILL IN "

# X_i = √(1 − q) S_i + √q S_{i+1} with independent signs S: covariance √(q(1 − q)) at distance 1,
# four equal values.
COMPLETED = {
    "stimulus": {
        "draw": "jnp.sqrt(1 - self.strength) * (s := jax.random.rademacher(key, (num, *self.shape), float))"
        ".reshape(num, -1) + jnp.sqrt(self.strength) * jnp.roll(s, -1, -1).reshape(num, -1)",
        "covariance": "np.where(np.arange(self.size) % self.size == 0, 1.0, np.where(np.isin(np.arange(self.size), "
        "(1, self.size - 1)), np.sqrt(self.strength * (1 - self.strength)), 0.0))",
        "marginal": "Empirical([s * np.sqrt(1 - self.strength) + t * np.sqrt(self.strength) "
        "for s in (-1, 1) for t in (-1, 1)])",
    },
    "network": {
        "readout": "jnp.mean(h**2, keepdims=True)"
    },  # an energy: no field, only its square, is seen
    "theory": {
        "response": "self.factor * self.covariance(w) / jnp.sqrt(2 * jnp.pi * (jnp.vdot(w, self.covariance(w)) "
        "+ jnp.finfo(w.dtype).tiny))",
        "coverage": "EXACT if stimulus.elliptical else APPROXIMATE if stimulus.marginal().excess_kurtosis > -1.9 "
        "else not_covered(f'MyTheory is not for {stimulus!r}. Use `gaussian_clone`.')",
    },
    "metric": {"metric": "np.abs(fields).sum(sites) ** 2 / (fields**2).sum(sites)"},
    "figure": {
        "what is drawn": "ax.plot(run.times, run.ipr[:, :, 0].T)",
        "what is found": "results['training'].ipr[:, -1, 0]",
        "whether": "bool(np.all((found > 1 / 40) & (found < 1)))",
    },
}
IMPORTS = {
    "stimulus": "from localfields.marginals import Empirical",
    "theory": "from localfields.theory.base import APPROXIMATE, EXACT, not_covered",
    "figure": "import numpy as np",
}


def completed(name: str) -> str:
    """The skeleton with its marked lines replaced; each mark is known, and each replacement
    used.
    """
    open_marks = dict(COMPLETED[name])
    lines = []
    for line in (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines():
        if MARK in line:
            code, mark = line.split(MARK)
            (key,) = (key for key in open_marks if mark.startswith(key))
            new = open_marks.pop(key)
            if "= ..." in code or "return ..." in code:
                line = code.replace("...", new)
            else:  # the whole statement
                line = code[: len(code) - len(code.lstrip())] + new
        lines.append(line)
    assert not open_marks
    text = "\n".join(lines) + "\n"
    return text.replace("\n\n\n", f"\n{IMPORTS.get(name, '')}\n\n", 1)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder outside the package, on the path; what is registered from it is forgotten after
    the test.
    """
    monkeypatch.setattr(
        _registry, "CLASSES", {family: dict(known) for family, known in _registry.CLASSES.items()}
    )
    metrics, modules, plugins = dict(METRICS), list(_start.MODULES), list(_start.PLUGINS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    METRICS.clear()
    METRICS.update(metrics)
    _start.MODULES[:], _start.PLUGINS[:] = modules, plugins
    for name in COMPLETED:
        sys.modules.pop(f"my_{name}", None)


def put(outside: Path, name: str) -> Path:
    path = outside / f"my_{name}.py"
    path.write_text(completed(name), encoding="utf-8")
    return path


def load(outside: Path, name: str):
    put(outside, name)
    importlib.invalidate_caches()
    return importlib.import_module(f"my_{name}")


def ising_task(sites: int = 12) -> lf.Discrimination:
    return lf.Discrimination(*(lf.stimuli.Ising((sites,), coupling=j) for j in (0.3, 0.7)))


@pytest.mark.parametrize("name", COMPLETED)
def test_a_skeleton_is_small_and_says_what_is_missing(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert len(re.findall(re.escape(MARK), text)) == len(COMPLETED[name])
    left = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value is ...
    ]
    marked = [number for number, line in enumerate(text.splitlines(), 1) if MARK in line]
    assert {
        node.lineno for node in left if "tuple[int" not in text.splitlines()[node.lineno - 1]
    } == set(marked)
    every = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert all(ast.get_docstring(node) for node in every)


def test_there_is_one_for_each_kind():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(COMPLETED)


# -- stimulus --------------------------------------------------------------------------------------


def test_stimulus_in_python(outside, key):
    cls = load(outside, "stimulus").MyStimulus
    assert lf.stimuli.MyStimulus is cls
    value = cls((12,), strength=0.3)
    num = 20_000
    x = np.asarray(value.sample(key, num))
    result = x.T @ x / num
    exact = value.covariance()[(np.arange(12)[None] - np.arange(12)[:, None]) % 12]
    # Var(X_i X_j) ≤ E X_i⁴ ≤ (√.7 + √.3)⁴ = 3.7: five standard errors of every entry.
    assert np.abs(result - exact).max() < 5 * math.sqrt(3.7 / num)
    assert np.abs(result - cls((12,), strength=0.1).covariance()[:, None]).max() > 5 * math.sqrt(
        3.7 / num
    )
    # κ − 3 = −2((1 − q)² + q²): sums of independent signs.
    assert value.marginal().excess_kurtosis == pytest.approx(-2 * (0.7**2 + 0.3**2), abs=1e-12)


def test_stimulus_through_the_verbs(outside):
    cls = load(outside, "stimulus").MyStimulus
    task = lf.Discrimination(cls((12,), strength=0.02), cls((12,), strength=0.4))
    run = lf.train(
        task, lf.networks.SingleNeuron(), steps=20, batch=20, members=2, estimator="orbit"
    )
    flow = lf.solve(task, lf.theory.EffectiveFlow(), initial=run.initial, times=run.times)
    assert run.weights.shape == flow.weights.shape == (2, 3, 1, 12)
    # One unit of flow time from the same start: the pull of the data is what both see.
    assert lf.compare(run, flow).cosine[:, -1].min() > 0.9
    # Its kurtosis, −2(0.6² + 0.4²), is below that at which a flat field falls apart; that of normal
    # data is not.
    assert -1.04 < lf.theory.critical_kurtosis(task) < 0
    normal = lf.Discrimination(*(one.gaussian_clone() for one in task.stimuli))
    assert [lf.predict(one).verdict for one in (task, normal)] == ["localized", "oscillatory"]
    again = lf.from_json(json.loads(json.dumps(task.to_json())))
    assert repr(again) == repr(task)
    with pytest.raises(lf.InputError, match="`strength` must be"):
        cls(strength=2)


def weights_of(file):
    """Receptive fields of a run that the command line has written, (member, time, neuron, site)."""
    with np.load(file) as archive:
        return archive["weights"]


def test_stimulus_at_the_command_line(outside):
    path, cls = put(outside, "stimulus"), load(outside, "stimulus").MyStimulus
    words = [
        "sample",
        "my-stimulus",
        "--shape",
        "12",
        "--strength",
        "0.3",
        "--num",
        "5",
        "--out",
        "x.npz",
    ]
    main(["--plugin", str(path), *words])
    with np.load(outside / "x.npz") as archive:
        values = np.unique(np.abs(archive["x"]).round(5))
    np.testing.assert_allclose(
        values, np.abs(np.sqrt(0.7) + np.array([-1, 1]) * np.sqrt(0.3)), atol=1e-5
    )
    small = ["--shape", "12", "--steps", "5", "--batch", "10"]
    words = ["train", "my-stimulus", "--strength", "0.2,0.5", *small, "--out", "run.npz"]
    main(["--plugin", str(path), *words])
    task = lf.Discrimination(*(cls((12,), strength=strength) for strength in (0.2, 0.5)))
    run = Experiment(task, method=Training(steps=5, batch=10)).run()
    np.testing.assert_array_equal(weights_of("run.npz"), run.weights)


# -- network ---------------------------------------------------------------------------------------


def test_network(outside):
    path, cls = put(outside, "network"), load(outside, "network").MyNetwork
    assert lf.networks.MyNetwork is cls
    weights = np.arange(6.0).reshape(2, 3)
    x = np.array([1.0, -2.0, 0.5])
    output = cls(hidden=2).apply({"weights": jnp.asarray(weights)}, jnp.asarray(x))
    np.testing.assert_allclose(output, [np.mean((weights @ x) ** 2)], rtol=1e-12)
    network = cls(hidden=3, init_scale=0.1)
    record = lf.Record(every=100, quantities=("weights", "loss"))
    run = lf.train(
        ising_task(), network, steps=200, batch=100, members=2, estimator="orbit", record=record
    )
    assert run.weights.shape == (2, 3, 3, 12)
    assert (run.loss[:, -1] < run.loss[:, 0]).all()
    words = [
        "--shape",
        "12",
        "--steps",
        "5",
        "--batch",
        "10",
        "--network",
        "my-network",
        "--hidden",
        "3",
    ]
    words += ["--out", "run.npz"]
    main(["--plugin", str(path), "train", "ising", "--coupling", "0.3,0.7", *words])
    run = Experiment(ising_task(), cls(hidden=3), Training(steps=5, batch=10)).run()
    np.testing.assert_array_equal(weights_of("run.npz"), run.weights)


# -- theory ----------------------------------------------------------------------------------------


def test_theory(outside):
    cls = load(outside, "theory").MyTheory
    assert lf.theory.MyTheory is cls
    task = lf.Discrimination(*(lf.stimuli.Gaussian((12,), xi=xi) for xi in (1, 2)))
    times = [0.0, 1.0, 5.0]
    mine, known = (
        lf.solve(task, theory, members=2, times=times)
        for theory in (cls(), lf.theory.LinearResponse())
    )
    np.testing.assert_allclose(mine.weights, known.weights, rtol=1e-6, atol=1e-8)
    other = lf.solve(task, cls(factor=0.5), members=2, times=times)
    assert np.abs(other.weights - known.weights).max() > 1e-3
    with pytest.raises(lf.InputError, match=r"MyTheory is not for Ising"):
        lf.solve(ising_task(), cls(), members=1, times=times)
    experiment = Experiment(task, method=Solution(cls(factor=2.0)))
    assert lf.from_json(json.loads(json.dumps(experiment.to_json()))).digest == experiment.digest


def test_theory_is_found_by_predict_and_by_the_exact_estimator(outside, monkeypatch):
    kur = lf.Discrimination(*(lf.stimuli.Kur((12,), xi=xi) for xi in (0.5, 1.0)))
    gaussian = lf.Discrimination(*(lf.stimuli.Gaussian((12,), xi=xi) for xi in (0.5, 1.0)))
    assert lf.predict(kur, starts=2).theory == "EffectiveFlow"
    cls = load(outside, "theory").MyTheory
    # Where it is as exact as another it has to ask for more; the one for everything else stands
    # back by itself.
    result = {
        name: lf.predict(task, starts=2) for name, task in (("kur", kur), ("normal", gaussian))
    }
    assert {name: (one.theory, one.exact) for name, one in result.items()} == {
        "kur": ("MyTheory", False),
        "normal": ("LinearResponse", True),
    }
    own = lf.solve(kur, cls(), members=2, until=2000.0, stop_tol=1e-4, tolerance=1e-6)
    np.testing.assert_allclose(result["kur"].field, own.final[0, 0], rtol=0, atol=1e-12)
    assert lf.predict(ising_task(), starts=2).theory == "ExactIsing"
    monkeypatch.setattr(cls, "priority", 1)
    assert lf.predict(gaussian, starts=2).theory == "MyTheory"
    neuron = lf.networks.SingleNeuron(init_scale=0.1)
    settings = {"estimator": "exact", "steps": 40, "learning_rate": 0.1, "members": 2}
    mine = lf.train(gaussian, neuron, **settings)
    monkeypatch.setattr(cls, "priority", -1)
    known = lf.train(gaussian, neuron, **settings)
    np.testing.assert_allclose(mine.final, known.final, rtol=0, atol=1e-6)
    with pytest.raises(lf.InputError, match="No exact gradient is known for SingleNeuron on Kur"):
        lf.train(kur, neuron, **settings)


# -- metric ----------------------------------------------------------------------------------------


def test_metric(outside):
    load(outside, "metric")
    run = lf.train(
        ising_task(), lf.networks.SingleNeuron(), steps=20, batch=10, members=2, estimator="orbit"
    )
    result = lf.measure(run, "my_metric")["my_metric"]
    assert result.dims == ("member", "time", "neuron") and result.shape == (2, 3, 1)
    w = run.weights.astype(np.float64)
    np.testing.assert_allclose(result, np.abs(w).sum(-1) ** 2 / (w**2).sum(-1), rtol=1e-12)
    assert "my_metric" in lf.measure(run)  # and among all of them
    assert result.attrs["long_name"].startswith("One line that says")


# -- figure ----------------------------------------------------------------------------------------


def test_figure(outside, capsys):
    path, figure = put(outside, "figure"), load(outside, "figure").FIGURE
    store = lf.Store(outside / "runs")
    made = make(figure, "tiny", store, outside)
    assert {one.suffix for one in outside.glob("my-figure.*")} == {".pdf", ".svg", ".png"}
    run = store.load(made.runs["training"])
    assert made.claims[0].verdict == "reproduced" and made.claims[0].measured.startswith(
        f"{run.ipr[:, -1].mean():.2f}"
    )
    assert "my-figure" not in all_figures()
    words = [
        "reproduce",
        "my-figure",
        "--scale",
        "tiny",
        "--out",
        "report",
        "--store",
        str(store.path),
    ]
    main(["--plugin", str(path), *words])
    assert "my-figure" in capsys.readouterr().out
    assert (outside / "report" / "my-figure.png").is_file()
    assert all_figures()["my-figure"].group == "extra"


def test_a_figure_of_a_name_that_is_taken_is_refused(outside, capsys):
    path = put(outside, "figure")
    path.write_text(
        path.read_text(encoding="utf-8").replace('"my-figure"', '"fig2"'), encoding="utf-8"
    )
    with pytest.raises(SystemExit) as stop:
        main(["--plugin", str(path), "reproduce", "fig2", "--scale", "tiny"])
    assert stop.value.code == 2
    assert "two figures called `fig2`" in capsys.readouterr().err
