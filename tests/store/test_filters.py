"""Filters find a field wherever it is in a run."""

import pytest

import localfields as lf
from localfields.store import Store
from localfields.store.filters import Filter

from .helpers import named, put, trajectory


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Four runs: A to D."""
    made = Store(tmp_path_factory.mktemp("filters"))
    put(made, steps=100, gain=100.0, estimator="orbit", seed=2**53 + 1)
    put(made, steps=1000, gain=100.0, estimator="independent", xi=(1.0, 2.0), seed=2**53)
    put(
        made,
        steps=2000,
        gain=5.0,
        estimator="orbit",
        network="committee",
        made=trajectory(members=5),
    )
    solution = {
        "type": "method/solution",
        "theory": {"type": "theory/exact-ising", "frequencies": 256},
        "times": [],
    }
    stimulus = {"type": "stimulus/ising", "coupling": 0.3, "shape": [40]}
    task = {"type": "task/discrimination", "stimuli": [stimulus], "flag": True, "nothing": None}
    made.save(
        *named({"task": task, "method": solution, "rates": [0.1, 0.2]}),
        trajectory(members=2, dtype="f8"),
    )
    return made


FILTERS = [
    ("gain=100", "AB"),
    ("gain==100.0", "AB"),
    ("gain = 1e2", "AB"),
    ("gain=100 estimator=orbit", "A"),
    ("steps>=1000", "BC"),
    ("steps>1000", "C"),
    ("steps<1000", "A"),
    ("steps<=1000", "AB"),
    ("method.steps>=1000", "BC"),
    ("xi=3", "AC"),
    ("xi=2", "B"),
    ("xi!=3", "B"),
    ("stimuli.xi=2", "B"),
    ("task.xi=2", "B"),
    ("task.stimuli.1.xi=2", "B"),
    ("task.stimuli.0.xi=2", ""),
    ("stimuli.0.xi<2", "ABC"),
    ("network=committee", "C"),
    ("network=network/committee", ""),
    ("type=network/committee", "C"),
    ("network!=committee", "AB"),
    ("stimulus=ising", "D"),
    ("stimuli=nlgp", "ABC"),
    ("method=training", "ABC"),
    ("theory=exact-ising", "D"),
    ("theory.frequencies=256", "D"),
    ("method.theory.frequencies>200", "D"),
    ("flag=true", "D"),
    ("flag=false", ""),
    ("nothing=null", "D"),
    ("flag>0", ""),
    ("rates=0.2", "D"),
    ("rates.1=0.2", "D"),
    ("rates.0=0.2", ""),
    ("members=5", "C"),
    ("members>=3", "ABC"),
    ("metrics.members=2", "D"),
    ("ipr>0", "ABCD"),
    ("ipr_max>1", ""),
    ("diverged=1", "ABCD"),
    ("metrics.outcomes.ok=4", "C"),
    ("device=cpu", "ABCD"),
    ("jax=0.10.0", "ABCD"),
    ("learning-rate=0.05", "ABC"),
    ("run-seconds>1", "ABCD"),
    ("seed=9007199254740993", "A"),
    ("seed=9007199254740992", "B"),
    ("created>=2020-01-01", "ABCD"),
    ("created<2020-01-01", ""),
    ("labels=zero-one", "ABC"),
    ("labels!=zero-one", ""),
]


@pytest.mark.parametrize(("line", "wanted"), FILTERS, ids=[line for line, _ in FILTERS])
def test_filters(store, line, wanted):
    letters = {one.digest: letter for one, letter in zip(store.list(), "ABCD", strict=True)}
    words = [line] if " = " in line else line.split()
    assert "".join(sorted(letters[one.digest] for one in store.list(words))) == wanted


def test_digest(store):
    first = store.list()[0]
    assert [one.digest for one in store.list([f"digest={first.digest}"])] == [first.digest]


MISTAKES = [
    ("gian=100", "Did you mean 'gain'?"),
    ("task.gian=100", "Did you mean 'gain'?"),
    ("qqqq=1", "runs show"),
    ("gain", "Give a field, one of = != < <= > >=, and a value"),
    ("=3", "a field, one of"),
    ("", "a field, one of"),
    ("steps>many", "Cannot compare a number with"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_mistakes(store, text, words):
    with pytest.raises(lf.InputError) as told:
        store.list([text])
    assert words in str(told.value)


def test_an_empty_store_has_no_fields_to_miss(tmp_path):
    assert Store(tmp_path).list(["gian=100"]) == []
    with pytest.raises(lf.InputError):
        Store(tmp_path).list(["gain"])


def test_values_may_hold_operators():
    assert Filter.of("stopped=a=b>c") == Filter("stopped", "=", "a=b>c")
    assert Filter.of("x=-3") == Filter("x", "=", "-3")
