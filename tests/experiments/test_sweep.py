"""Sweeps: which points there are, which run together, that each is what it would be alone, and
that they resume.
"""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import localfields as lf
from localfields import InputError
from localfields.experiments import Sweep, run_sweep, stored_points, stored_sweeps, sweep_from
from localfields.experiments.document import read_experiment, read_sweep
from localfields.experiments.paths import resolve
from localfields.experiments.plan import COMPILE_SECONDS
from localfields.experiments.values import value_list

TASK = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
QUICK = lf.Training(steps=6, batch=20, every=3, evaluate=10)
BASE = lf.Experiment(TASK, method=QUICK)
NLGP = lf.Experiment(
    lf.Discrimination(*(lf.stimuli.NLGP((8,), xi=xi) for xi in (0.3, 0.7))), method=QUICK
)


# -- names of fields -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("gain", [("task", "stimuli", 0, "gain"), ("task", "stimuli", 1, "gain")]),
        ("xi[1]", [("task", "stimuli", 1, "xi")]),
        ("task.stimuli.1.xi", [("task", "stimuli", 1, "xi")]),
        ("stimuli.shape", [("task", "stimuli", 0, "shape"), ("task", "stimuli", 1, "shape")]),
        ("init_scale", [("network", "init_scale")]),
        ("learning_rate", [("method", "learning_rate")]),
        ("network", [("network",)]),
    ],
)
def test_names_of_fields(text, paths):
    assert list(resolve(NLGP, text).paths) == paths


def test_a_nested_field_is_found_and_ambiguity_is_told():
    copula = lf.stimuli.Copula((8,), marginal_law=lf.marginals.Algebraic(k=5), xi=0.5)
    experiment = lf.Experiment(lf.Discrimination(copula, copula.replace(xi=0.7)), method=QUICK)
    assert resolve(experiment, "k").paths[1] == ("task", "stimuli", 1, "marginal_law", "k")
    both = lf.Experiment(lf.Discrimination(copula, lf.stimuli.Kur((8,), k=3, xi=0.5)), method=QUICK)
    with pytest.raises(
        InputError, match=r"could mean any of task\.stimuli\.k, task\.stimuli\.marginal_law\.k"
    ):
        resolve(both, "k")
    assert resolve(both, "marginal_law.k").paths == (("task", "stimuli", 0, "marginal_law", "k"),)


MISTAKES = [
    ({"gian": [1]}, "Did you mean 'gain'"),
    ({"gain": []}, "at least one"),
    ({"gain": 3}, "at least one"),
    ({"gain": [1, -1]}, "`gain` must be positive"),
    ({"gain": [1, 1.0]}, "all different"),
    ({"gain": [[1, 2, 3]]}, "There are 2 classes"),
    ({"gain": [1], "gain[1]": [2]}, "`gain` is swept twice"),
    ({"network": ["single-neuron"], "init_scale": [1]}, "is swept twice"),
    ({"xi[2]": [1]}, "counted from 0"),
    ({"seed": [1, 2]}, "`seeds`"),
    ({"members": [1, 2]}, "`seeds`"),
    ({3: [1]}, "name of a field"),
    ({"gain": [1, 2], "xi": [0.5, 0.6]}, r"identical at gain = 1.0, xi = 0.5. `xi` is set for ev"),
    (
        {"gain": [1, 2], "xi": [[0.3, 0.7], [0.5, 0.5]]},
        r"identical at gain = 1.0, xi = \[0.5, 0.5\]",
    ),
    ({"xi[1]": [0.5, 0.3], "gain": [1]}, r"identical at xi\[1\] = 0.3, gain = 1.0"),
    (["gain"], "lists of values"),
    ({"gain": "logspace:0:1:3"}, "positive"),
]


@pytest.mark.parametrize(("axes", "words"), MISTAKES, ids=[str(axes) for axes, _ in MISTAKES])
def test_mistakes_in_axes(axes, words):
    with pytest.raises(InputError, match=words):
        Sweep(NLGP, axes)


def test_other_mistakes():
    with pytest.raises(InputError, match="an ensemble"):
        Sweep(NLGP.replace(method=QUICK.replace(members=3)))
    with pytest.raises(InputError, match="several values of `gain`"):
        Sweep(
            lf.Experiment(
                lf.Discrimination(*(lf.stimuli.NLGP((8,), gain=[1, 2], xi=xi) for xi in (0.3, 0.7)))
            )
        )
    with pytest.raises(InputError, match="of one length"):
        Sweep(NLGP, {"gain": [1, 2], "xi[1]": [0.5]}, together="list")
    with pytest.raises(InputError, match="all different"):
        Sweep(NLGP, seeds=[1, 1])
    with pytest.raises(InputError, match="at most"):
        Sweep(NLGP, {"gain": list(range(1, 12))}, seeds=10**6)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("linspace:0:1:3", [0.0, 0.5, 1.0]),
        ("logspace:0.1:10:3", [0.1, 1.0, 10.0]),
        ("logspace:3:3:1", [3.0]),
        ("range:1:4", [1, 2, 3, 4]),
        ("range:0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("values:shared:independent", ["shared", "independent"]),
        ("values:1,3:2,4", [[1.0, 3.0], [2.0, 4.0]]),
    ],
)
def test_values_in_a_few_characters(text, values):
    assert value_list(text) == values


@pytest.mark.parametrize(
    "text", ["linspace:1:2", "linspace:1:2:0", "range:1:2:0", "range:3:1", "logspace:a:b:3", "1,2"]
)
def test_values_that_are_none(text):
    with pytest.raises(InputError):
        value_list(text)


# -- what runs together ----------------------------------------------------------------------------


def sizes(sweep):
    return [len(one.points) for one in sweep.ensembles()]


def test_points_that_differ_in_numbers_run_together():
    assert sizes(
        Sweep(NLGP, {"gain": [1, 2], "learning_rate": [0.1, 0.2], "init_scale": [1, 2, 3]}, seeds=5)
    ) == [60]
    assert sizes(
        Sweep(NLGP, {"gain": [1, 2], "batch": [20, 40], "shape": [(8,), (10,)]}, seeds=3)
    ) == [6, 6, 6, 6]
    assert sizes(Sweep(NLGP, {"stop_tol": [0.1, 0.2]}, seeds=2)) == [
        2,
        2,
    ]  # a number that an ensemble has but one of
    assert sizes(Sweep(NLGP, {"gain": [1, 2, 3]}, seeds=100, chunk=100)) == [100, 100, 100]
    assert sizes(Sweep(NLGP, seeds=11, chunk=5)) == [4, 4, 3]
    shared = NLGP.replace(
        method=QUICK.replace(estimator="shared")
    )  # draws are shared by those that see the same
    assert sizes(Sweep(shared, {"gain": [1, 2], "init_scale": [1, 2]}, seeds=3)) == [6, 6]
    flow = BASE.replace(method=lf.Solution(lf.theory.ExactIsing(), until=10.0))
    assert sizes(Sweep(flow, {"coupling[1]": [0.5, 0.6], "tolerance": [1e-6, 1e-8]}, seeds=2)) == [
        4,
        4,
    ]


def test_one_program_serves_a_sweep(tmp_path):
    from localfields._ensemble import TRACES

    sweep = Sweep(
        BASE, {"coupling[1]": [0.5, 0.6, 0.7, 0.9], "learning_rate": [0.1, 0.2]}, seeds=3, chunk=6
    )
    assert sizes(sweep) == [6] * 4
    before = TRACES["advance"]
    assert run_sweep(sweep, tmp_path).complete
    assert TRACES["advance"] - before == 1


@pytest.mark.parametrize("estimator", ["independent", "exact"])
def test_points_are_what_they_are_alone(estimator, tmp_path):
    """Row by row. Held-out samples are shared by an ensemble, whose first seed draws them: a row
    of its other seed has another estimate of loss and accuracy than alone. An exact loss is the
    same for all.
    """
    base = BASE.replace(method=QUICK.replace(estimator=estimator))
    axes = {"coupling": [[0.3, 0.7], [0.1, 0.8]], "learning_rate": [0.05, 0.5], "batch": [20, 30]}
    sweep = Sweep(base, axes, seeds=[7, 3], chunk=4)
    found = run_sweep(sweep, tmp_path)
    data, rows = found.dataset(), found.table()
    assert found.complete and dict(data["ipr"].sizes) == {
        **dict(zip(sweep.dims, sweep.shape, strict=True)),
        "neuron": 1,
    }
    assert len(rows) == len(sweep) == 16
    for index, row in enumerate(rows):
        alone = sweep.point(index).run()
        place = dict(zip(sweep.dims, np.unravel_index(index, sweep.shape), strict=True))
        here = data.isel(place)
        np.testing.assert_allclose(here["ipr_over_time"].values, alone.ipr[0], rtol=1e-12)
        np.testing.assert_allclose(here["flow_time"].values, alone.times, rtol=1e-12)
        assert int(here["peak"][0]) == alone.peak[0, -1, 0] and str(here["outcome"].values) == "ok"
        stored = found.store.load(row["run"])
        np.testing.assert_array_equal(stored.final[row["member"]], alone.final[0])
        given = alone.experiment["method"]
        own_samples, exact = row["seed"] == sweep.seeds[0], estimator == "exact"
        assert row == {
            "coupling": [one["coupling"] for one in alone.experiment["task"]["stimuli"]],
            "learning_rate": given["learning_rate"],
            "batch": given["batch"],
            "seed": given["seed"],
            "outcome": "ok",
            "ipr": pytest.approx(alone.ipr[0, -1, 0], rel=1e-6),
            "localized": float(alone.ipr[0, -1, 0] > 4 / (8 + 2)),
            "loss": pytest.approx(alone.loss[0, -1], rel=1e-6)
            if own_samples or exact
            else row["loss"],
            "accuracy": alone.series["accuracy"][0, -1] if own_samples else row["accuracy"],
            "run": row["run"],
            "member": row["member"],
        }
        for name in ("learning_rate", "batch", "seed", "loss", "accuracy"):
            assert row[name] == here[name]
        assert (
            abs(alone.loss[0, 0] / alone.loss[0, -1] - 1) > 1e-4
        )  # else the wrong record would pass


def test_the_fraction_of_localized_neurons(tmp_path):
    """Of three neurons one is a single site, of ratio 1, and two are waves, of ratio 3/2N; they
    hardly learn.
    """
    wave = np.cos(2 * np.pi * np.arange(8) / 8)
    fields = np.stack([np.eye(8)[3], wave, np.roll(wave, 1)])
    slow = QUICK.replace(learning_rate=1e-6)
    committee = BASE.replace(network=lf.networks.Committee(3), method=slow, initial=fields)
    (row,) = run_sweep(Sweep(committee), tmp_path).table()
    assert row["localized"] == 1 / 3
    assert row["ipr"] == pytest.approx((1 + 2 * 1.5 / 8) / 3, rel=1e-4)


def test_a_single_point_is_the_entry_of_its_own_experiment(tmp_path):
    sweep = Sweep(BASE, seeds=[5])
    found = run_sweep(sweep, tmp_path)
    assert found.store.digests() == [BASE.replace(method=QUICK.replace(seed=5)).digest]


def test_lists_run_side_by_side(tmp_path):
    sweep = Sweep(
        BASE, {"coupling[1]": [0.5, 0.6], "learning_rate": [0.1, 0.1]}, seeds=3, together="list"
    )
    data = run_sweep(sweep, tmp_path).dataset()
    assert dict(data["loss"].sizes) == {"point": 2, "seed": 3}
    assert data["coupling[1]"].dims == ("point",) and data["learning_rate"].values.tolist() == [
        0.1,
        0.1,
    ]
    assert data["flow_time"].dims == ("step",)  # the same for all


def test_shapes_and_networks_of_different_size_share_a_dataset(tmp_path):
    axes = {"network": [lf.networks.SingleNeuron(), lf.networks.Committee(3)], "steps": [3, 4]}
    data = run_sweep(Sweep(BASE, axes, seeds=2), tmp_path).dataset()
    assert dict(data["ipr_over_time"].sizes) == {
        "network": 2,
        "steps": 2,
        "seed": 2,
        "step": 3,
        "neuron": 3,
    }
    assert data["step"].values.tolist() == [0, 3, 4]
    known = np.isfinite(data["ipr"]).sum(dim="neuron")
    assert (known.isel(network=0) == 1).all() and (known.isel(network=1) == 3).all()
    assert np.isnan(data["loss_over_time"].sel(steps=3, step=4)).all()


def test_a_theory_is_swept_too(tmp_path):
    """Together, and each point is what it is alone, to what the integrator promises."""
    flow = BASE.replace(
        method=lf.Solution(lf.theory.ExactIsing(), times=[0.0, 3.0, 20.0], tolerance=1e-10)
    )
    sweep = Sweep(flow, {"coupling[1]": [0.6, 0.8], "init_scale": [0.5, 1.0]}, seeds=[4, 9])
    found = run_sweep(sweep, tmp_path)
    data = found.dataset()
    assert len(found.parts) == 1 and np.isfinite(data["ipr"]).all() and "onset_time" in data
    together = found.store.load(found.parts[0].digest)
    for index in (0, 3, 6):
        alone = sweep.point(index).run()
        np.testing.assert_array_equal(together.initial[index], alone.initial[0])
        np.testing.assert_allclose(together.weights[index], alone.weights[0], rtol=0, atol=1e-7)
        others = np.delete(together.weights, index, axis=0)[
            :, 1
        ]  # at a time that they pass on the way
        assert np.abs(others - alone.weights[0, 1]).max(axis=(1, 2)).min() > 1e-3


# -- what is going to run --------------------------------------------------------------------------


def test_lists_that_leave_classes_equal():
    axes = {"xi[0]": [0.3, 0.5], "xi[1]": [0.5, 0.3]}
    assert len(Sweep(NLGP, axes, together="list")) == 2
    with pytest.raises(InputError, match=r"identical at xi\[0\] = 0.3, xi\[1\] = 0.3"):
        Sweep(NLGP, axes)  # as a grid


def test_a_plan_says_what_varies_and_what_differs():
    plan = Sweep(NLGP, {"gain": [1, 10], "xi[1]": [0.5, 0.6, 0.7]}, seeds=2, chunk=6).plan()
    assert plan.varies == {"gain": (1.0, 10.0), "xi[1]": (0.5, 0.6, 0.7)}
    assert plan.differs == {"xi": [0.3, (0.5, 0.6, 0.7)]}
    assert (plan.seeds, plan.points, plan.runs) == (2, 12, 2)
    apart = Sweep(NLGP, {"gain": [[1, 2], [1, 3]]}).plan()
    assert apart.differs == {"xi": [0.3, 0.7], "gain": [1.0, (2.0, 3.0)]}
    assert "gain: 1 in class 0; 2, 3 in class 1" in str(apart)
    flow = BASE.replace(method=lf.Solution(lf.theory.ExactIsing()))
    assert Sweep(flow, seeds=2).plan().seconds is None


@pytest.mark.slow
def test_the_time_of_a_plan_is_of_the_right_order(tmp_path):
    """Without compiling: a dropped factor of members, steps or samples is one of 30 or more."""
    training = lf.Training(steps=300, batch=1000, every=300, evaluate=10)
    sweep = Sweep(NLGP.replace(method=training), {"gain": [1, 10]}, seeds=30)
    (part,) = run_sweep(sweep, tmp_path).parts
    measured = lf.Store(tmp_path).load(part.digest).manifest["run_seconds"]
    assert 0.1 < (sweep.plan().seconds - COMPILE_SECONDS) / measured < 10


# -- stored and resumed ----------------------------------------------------------------------------


def test_json_round_trip():
    sweep = Sweep(
        NLGP,
        {"gain": [1, 2.0], "network": ["single-neuron"], "xi": [[0.3, 0.7], [0.2, 0.5]]},
        seeds=2,
        chunk=9,
    )
    again = sweep_from(json.loads(sweep.canonical()))
    assert (
        again.digest
        == sweep.digest
        == Sweep(NLGP, {**dict(sweep.axes), "gain": [1.0, 2]}, [0, 1], chunk=9).digest
    )
    assert again.digest != Sweep(NLGP, dict(sweep.axes), 2).digest
    with pytest.raises(InputError, match="newer"):
        sweep_from({"schema": 99})
    with pytest.raises(InputError, match="A sweep was expected"):
        sweep_from({"type": "network/single-neuron"})


def test_an_interrupted_sweep_computes_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "localfields.training.loop.POLL_INTERVAL", 0.0
    )  # looks at cancel at every record, however fast
    sweep = Sweep(BASE, {"coupling[1]": [0.5, 0.6, 0.7]}, seeds=4, chunk=4)
    looks = []

    def cancel():
        looks.append(1)
        return len(looks) > 3

    first = run_sweep(sweep, tmp_path, cancel=cancel)
    done = sum(len(one.points) for one in first.parts)
    assert first.stopped == "cancelled" and 0 < done < 12 and not first.complete
    assert (
        np.isnan(first.dataset()["ipr"]).sum() == 12 - done
        and first.table()[-1]["outcome"] == "missing"
    )
    assert stored_points(sweep, first.store) == done
    told = []
    second = run_sweep(sweep, tmp_path, on_progress=told.append)
    assert (
        second.complete
        and second.reused == done == told[0].done
        and told[-1].done == told[-1].total == 12
    )
    assert told[-1].seconds_left == 0 and len(second.store.digests()) == 3
    third = run_sweep(sweep, tmp_path, on_progress=lambda _: pytest.fail("computed again"))
    assert third.complete and third.reused == 12
    assert [digest for digest, one in stored_sweeps(third.store) if one.digest == sweep.digest] == [
        sweep.digest
    ]


def test_ctrl_c_ends_a_sweep_that_can_go_on(tmp_path):
    sweep = Sweep(BASE, {"batch": [20, 30]}, seeds=2)

    def interrupt(progress):
        if progress.done >= 2:
            raise KeyboardInterrupt

    found = run_sweep(sweep, tmp_path, on_progress=interrupt)
    assert found.stopped == "cancelled" and not found.complete
    assert run_sweep(sweep, tmp_path).complete


def test_failures_are_listed_and_not_fatal(tmp_path):
    sweep = Sweep(BASE, {"batch": [1, 20]}, seeds=3)
    found = run_sweep(sweep, tmp_path)
    assert [one.points for one in found.failures] == [(0, 1, 2)] and "`batch`" in found.failures[
        0
    ].message
    assert (
        not found.complete
        and [row["outcome"] for row in found.table()] == ["failed"] * 3 + ["ok"] * 3
    )
    assert (found.dataset()["outcome"].sel(batch=1) == "missing").all()
    again = run_sweep(sweep, tmp_path)
    assert (
        again.reused == 3 == stored_points(sweep, again.store) and again.failures == found.failures
    )
    with pytest.raises(InputError, match="`proportions`"):
        run_sweep(
            Sweep(BASE, {"proportions": [[0.2, 0.3, 0.5]]}), tmp_path
        )  # not one point can be made


def test_one_bad_member_costs_one_point(tmp_path, monkeypatch):
    """An ensemble that fails is divided until what fails is alone; the others keep their
    results.
    """
    from localfields.experiments import cluster

    real = cluster.run_or_load

    def picky(experiment, *args, **more):
        if 3 in np.atleast_1d(experiment.method.seed):
            raise MemoryError("too much")
        return real(experiment, *args, **more)

    monkeypatch.setattr(cluster, "run_or_load", picky)
    sweep = Sweep(BASE, seeds=8)
    found = run_sweep(sweep, tmp_path)
    assert [one.points for one in found.failures] == [(3,)] and "MemoryError" in found.failures[
        0
    ].message
    assert sorted(len(one.points) for one in found.parts) == [1, 2, 4]
    assert stored_points(sweep, found.store) == 7
    alone = sweep.point(5).run()
    row = found.table()[5]
    np.testing.assert_array_equal(found.store.load(row["run"]).final[row["member"]], alone.final[0])
    monkeypatch.undo()
    whole = run_sweep(sweep, tmp_path)
    assert whole.complete


def test_the_table_as_csv(tmp_path):
    found = run_sweep(
        Sweep(BASE, {"coupling": [[0.3, 0.7], [0.1, 0.8]]}, seeds=2), tmp_path / "store"
    )
    found.write_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["coupling"] for row in rows] == ["0.3,0.7", "0.3,0.7", "0.1,0.8", "0.1,0.8"]
    assert [float(row["ipr"]) for row in rows] == [row["ipr"] for row in found.table()]


# -- files -----------------------------------------------------------------------------------------

TOML = """
seeds = 2
[task]
stimuli = [{type = "ising", shape = [8], coupling = 0.3}, {type = "stimulus/ising", shape = [8], coupling = 0.7}]
[network]
init_scale = 0.5
[method]
type = "training"
steps = 6
batch = 20
every = 3
evaluate = 10
[axes]
"coupling[1]" = "linspace:0.6:0.8:2"
"""


def test_a_file_says_the_same_as_python(tmp_path):
    (tmp_path / "sweep.toml").write_text(TOML)
    expected = BASE.replace(network=lf.networks.SingleNeuron(init_scale=0.5))
    assert (
        read_sweep(tmp_path / "sweep.toml").digest
        == Sweep(expected, {"coupling[1]": [0.6, 0.8]}, 2).digest
    )
    alone = TOML.partition("[axes]")[0].replace("seeds = 2", "")
    (tmp_path / "one.toml").write_text(alone)
    (tmp_path / "one.json").write_text(expected.canonical())
    assert (
        read_experiment(tmp_path / "one.toml").digest
        == read_experiment(tmp_path / "one.json").digest
    )
    assert read_experiment(tmp_path / "one.toml").digest == expected.digest
    (tmp_path / "theory.toml").write_text(
        '[method]\ntype = "solution"\ntheory = {type = "effective-flow"}\n'
    )
    assert isinstance(read_experiment(tmp_path / "theory.toml").method, lf.Solution)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[task", "is not valid TOML"),
        ("a.json", "[", "is not valid JSON"),
        ("a.json", "[]", "an object"),
        ("a.yaml", "", ".toml or .json"),
        ("a.toml", '[method]\ntype = "trainning"', "Did you mean 'training'"),
        ("a.toml", "[method]\nstep = 3", "Did you mean 'steps'"),
        ("a.toml", "[task]\nstimuli = [{gain = 1}, {gain = 2}]", "`type`"),
        ("missing.toml", None, "Cannot read"),
    ],
)
def test_mistakes_in_files(name, text, words, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        read_experiment(tmp_path / name)
