"""What a visitor may ask for: sizes are bounded one by one, and nothing that names a file is
even made.
"""

import dataclasses
import json
import sys
import time

import numpy as np
import pytest

import localfields as lf
from localfields import InputError
from localfields._spec import Kind, Spec, declare, registered
from localfields.app.limits import SAFE_KINDS, Limits, check_safe, record_bytes

from .helpers import experiment

NLGP = lf.stimuli.NLGP


def classes(shape, count=2, **more):
    return lf.Discrimination(*(NLGP(shape, xi=1 + c / 10, **more) for c in range(count)))


LARGE = {
    "sites": (dict(task=classes((5000,))), "number of sites must be at most 4096 here, got 5000"),
    "neurons": (
        dict(network=lf.networks.Committee(401)),
        "number of neurons must be at most 400 here, got 401",
    ),
    "members": (
        dict(method=lf.Training(members=101)),
        "`members` must be at most 100 here, got 101",
    ),
    "swept": (
        dict(task=classes((40,), gain=np.linspace(1, 2, 101))),
        "`members` must be at most 100 here, got 101",
    ),
    "seeds": (
        dict(method=lf.Training(seed=tuple(range(101)))),
        "`members` must be at most 100 here, got 101",
    ),
    "classes": (
        dict(task=classes((40,), count=9)),
        "number of classes must be at most 8 here, got 9",
    ),
    "steps": (
        dict(method=lf.Training(steps=50_001)),
        "`steps` must be at most 50000 here, got 50001",
    ),
    "batch": (
        dict(method=lf.Training(batch=20_001)),
        "`batch` must be at most 20000 here, got 20001",
    ),
    "evaluate": (
        dict(method=lf.Training(evaluate=20_001)),
        "`evaluate` must be at most 20000 here",
    ),
    "numbers": (
        dict(task=classes((64, 64)), method=lf.Training(batch=5000)),
        "`batch` × sites must be at most",
    ),
    "held out": (
        dict(task=classes((64, 64)), method=lf.Training(evaluate=5000)),
        "`evaluate` × sites must be at most",
    ),
    "orbit": (
        dict(network=lf.networks.Committee(400), method=lf.Training(estimator="orbit", batch=2000)),
        "`batch` × sites must be at most 20000000 here",
    ),
    "draws": (
        dict(
            network=lf.networks.Committee(100),
            method=lf.Training(steps=50_000, batch=5000, every=1000),
        ),
        "Steps × batch × members × neurons must be at most",
    ),
    "records": (
        dict(network=lf.networks.Committee(100), method=lf.Training(steps=50_000, batch=50)),
        "The memory for records must be at most 32 MB here, got 84 MB. Record less often",
    ),
    "method": (dict(method=lf.Solution()), "Only training can be run here"),
}


@pytest.mark.parametrize("name", LARGE)
def test_each_limit_is_refused(name):
    parts, words = LARGE[name]
    with pytest.raises(InputError, match="here") as caught:
        Limits().check(lf.Experiment(**parts))
    assert words in str(caught.value)


def test_the_largest_that_is_allowed_passes():
    Limits().check(
        lf.Experiment(classes((64, 64)), method=lf.Training(steps=5000, batch=4000, every=500))
    )
    Limits().check(
        lf.Experiment(method=lf.Training(steps=50_000, batch=4000, members=100, every=2000))
    )


@pytest.mark.parametrize(
    "network", [lf.networks.SingleNeuron(), lf.networks.TwoLayer(3), lf.networks.Committee(3)]
)
def test_memory_of_records_is_that_of_the_engine(network):
    """Against what `train` itself tells; a network without some parameters takes a little less."""
    wanted = lf.Experiment(
        experiment().task, network, lf.Training(steps=20, batch=50, every=3, evaluate=10, members=2)
    )
    sizes = []
    wanted.run(on_progress=lambda progress: sizes.append(progress.record_bytes))
    size = record_bytes(wanted, 2)
    assert sizes[0] <= size <= sizes[0] * 1.7
    if isinstance(network, lf.networks.TwoLayer):
        assert size == sizes[0]


def test_what_was_written_is_read():
    wanted = experiment(members=3)
    assert Limits().read(wanted.canonical()).digest == wanted.digest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("{" * 10, "not valid JSON"),
        ("7", "must be an object"),
        ("x" * 300_000, "300000 characters"),
        ('{"task": {"type": "task/discrimination", "gain": 3}}', "gain"),
        ('{"schema": 99}', "schema"),
    ],
)
def test_no_experiment(text, words):
    with pytest.raises(InputError, match=words):
        Limits().read(text)


def plain(**changes):
    return json.loads(experiment().canonical()) | changes


def with_stimulus(stimulus):
    content = plain()
    content["task"]["stimuli"] = [stimulus, stimulus]
    return json.dumps(content)


@pytest.mark.parametrize(
    "stimulus",
    [
        {"type": "stimulus/nlgp", "shape": [4096, 4096]},
        {"type": "stimulus/student-t", "shape": [40], "nu": [5.0] * 10_000},
        {"type": "stimulus/nlgp", "shape": [2**40]},
    ],
)
def test_sizes_are_refused_before_anything_is_made(stimulus):
    """Tables of ten thousand laws, or a lattice of 17 million sites, would take seconds to make."""
    begin = time.perf_counter()
    with pytest.raises(InputError, match="at most .* here"):
        Limits().read(with_stimulus(stimulus))
    assert time.perf_counter() - begin < 0.5


def test_the_number_of_parts_is_bounded():
    deep = {"type": "gates/flat"}
    for _ in range(100):
        deep = {"type": "gates/redundant", "gates": deep}
    with pytest.raises(InputError, match="number of parts of an experiment must be at most 64"):
        Limits().read(json.dumps(plain(network={"type": "network/gated-linear", "gates": deep})))


OPENED: list[str] = []
sys.addaudithook(
    lambda event, args: OPENED.append(str(args[0])) if event == "open" and WATCH else None
)
WATCH = False


@pytest.fixture
def opened():
    """Paths that were opened in this test."""
    global WATCH
    WATCH = True
    OPENED.clear()
    yield OPENED
    WATCH = False


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.npy"
    np.save(path, np.random.default_rng(0).normal(size=(100, 12)))
    return str(path)


def test_reading_a_file_would_be_seen(secret, opened):
    """The power of the tests below: without limits the same text opens the file."""
    with pytest.raises(InputError, match="identical"):  # but for that, it is a task
        lf.Experiment.of(with_stimulus({"type": "stimulus/samples", "data": secret, "shape": [12]}))
    assert secret in opened


@pytest.mark.parametrize(
    "form",
    [
        lambda path: with_stimulus({"type": "stimulus/samples", "data": path, "shape": [12]}),
        lambda path: with_stimulus(f"samples:data={path},shape=12"),
        lambda path: with_stimulus({"type": "stimulus/image-patches", "source": path}),
        # Made before it is found to be of the wrong family.
        lambda path: with_stimulus(
            {
                "type": "stimulus/copula",
                "shape": [12],
                "marginal_law": {"type": "stimulus/samples", "data": path},
            }
        ),
        lambda path: json.dumps(plain(network={"type": "stimulus/samples", "data": path})),
        lambda path: json.dumps(plain(network=f"samples:data={path}")),
        lambda path: json.dumps(plain(method={"type": "sweep/sweep", "axes": path})),
        lambda path: json.dumps({"type": "stimulus/samples", "data": path}),
        lambda path: json.dumps([{"type": "stimulus/samples", "data": path}]),
    ],
)
def test_no_path_of_a_visitor_reaches_the_file_system(form, secret, opened):
    with pytest.raises(InputError):
        Limits().read(form(secret))
    assert not [path for path in opened if "secret" in path]


def test_classes_that_open_files_are_known_by_their_fields():
    """Which classes are left out today; a new one with a field of a new kind is left out by
    itself.
    """
    odd = set()
    for family in (
        "stimulus",
        "network",
        "marginal",
        "kernel",
        "gates",
        "task",
        "method",
        "experiment",
        "theory",
    ):
        for name, cls in registered(family).items():
            try:
                check_safe(cls)
            except InputError:
                odd.add(name)
    assert {"samples", "image-patches"} <= odd and "nlgp" not in odd

    @dataclasses.dataclass(frozen=True)
    class Path(Kind):
        def check(self, name, value):
            return value

    class Lurking(Spec):
        place: str = declare(Path(), default="", help="a file")

    assert Path not in SAFE_KINDS
    with pytest.raises(InputError, match="`place` of Lurking may name a file"):
        check_safe(Lurking)


def test_the_limits_are_told_in_words():
    words = " ".join(
        Limits(sites=123, run_seconds=45, sessions=7, record_bytes=8_000_000).sentences()
    )
    for part in ("123 sites", "45 s", "7 pages", "8 MB", "2e10"):
        assert part in words


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            {"stimulus": "student-t", "nu": ",".join(["5"] * 50_000)},
            "`nu` must have at most 100 values here, got 50000",
        ),
        ({"stimulus": "nlgp", "xi": "1," * 150_000}, "characters"),
        ({"stimulus": "nlgp", "shape": "4096x4096"}, "number of sites"),
        ({"stimulus": "samples"}, "`data` of Samples may name a file"),
        ({"stimulus": "copula", "marginal_law": "samples:data=x"}, "Samples"),
    ],
)
def test_texts_are_looked_at_before_anything_is_made(texts, words):
    """Fifty thousand classes would keep the server from everybody else for half a minute."""
    begin = time.perf_counter()
    with pytest.raises(InputError, match=words):
        Limits().check_texts(texts)
    assert time.perf_counter() - begin < 0.5
