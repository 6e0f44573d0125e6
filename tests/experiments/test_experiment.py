"""An experiment as a value: one canonical text, one digest, and what a person may write for it."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys

import jax
import numpy as np
import pytest

import localfields as lf
from localfields import InputError
from localfields._spec import fields, from_json, name_of, registered
from localfields.experiments import (
    Experiment,
    Fit,
    Method,
    Solution,
    Training,
    experiment,
    experiment_from,
)
from localfields.store import Store

ISING = lf.Discrimination(*(lf.stimuli.Ising((8,), coupling=j) for j in (0.3, 0.7)))
NLGP = lf.Discrimination(*(lf.stimuli.NLGP((8,), xi=xi, gain=3) for xi in (0.5, 1)))
NEURON = lf.networks.SingleNeuron(init_scale=0.1)
QUICK = Training(steps=12, batch=10, every=3, evaluate=10)

MANY = {
    "all left out": Experiment(),
    "ising": Experiment(ISING, NEURON, QUICK),
    "swept": Experiment(
        NLGP.replace(l2=[0.0, 0.1]), NEURON, QUICK.replace(learning_rate=[0.1, 0.2])
    ),
    "committee": Experiment(
        ISING, lf.networks.Committee(2, init_scale=0.1), QUICK.replace(seed=(5, 9))
    ),
    "copula": Experiment(
        lf.Discrimination(lf.stimuli.Copula((8,), marginal_law="laplace", xi=1), NLGP.stimuli[0])
    ),
    "recorded": Experiment(
        ISING, NEURON, QUICK.replace(quantities=("ipr", "loss"), stop_tol=1e-3, estimator="exact")
    ),
    "initial": Experiment(ISING, NEURON, QUICK, initial=np.linspace(-1, 1, 8)[None]),
    "solution": Experiment(
        ISING, NEURON, Solution(lf.theory.ExactIsing(), times=[0, 0.5, 1.5], members=2)
    ),
    "effective flow": Experiment(NLGP, NEURON, Solution(until=3)),
}
each = pytest.mark.parametrize("made", MANY.values(), ids=MANY)


# -- the canonical text ----------------------------------------------------------------------------


# The names of stored results follow from this text. A change of it, be it one default, leaves all
# results that people have stored behind. It may be updated when that is meant: then say so in the
# changelog.
CANONICAL = (
    '{"initial":[],"method":{"batch":10,"estimator":"independent","evaluate":10,"every":3,"learning_rate":0.05,'
    '"members":1,"optimizer":"sgd","quantities":["weights","biases","readout","readout_bias","loss","accuracy"],'
    '"seed":0,"steps":12,"stop_tol":0.0,"type":"method/training"},"network":{"activation":"relu","init":"glorot",'
    '"init_scale":0.1,"type":"network/single-neuron"},"precision":"float32","schema":2,"task":{"l1":0.0,"l2":0.0,'
    '"labels":"zero-one","loss":"mse","proportions":[],"stimuli":[{"coupling":0.3,"shape":[8],"type":"stimulus/ising"},'
    '{"coupling":0.7,"shape":[8],"type":"stimulus/ising"}],"type":"task/discrimination"},"type":"experiment/experiment"}'
)


def test_the_canonical_text_is_that_of_stored_results():
    made = MANY["ising"]
    assert made.canonical() == CANONICAL
    assert made.digest == hashlib.sha256(CANONICAL.encode()).hexdigest()


@each
def test_there_and_back(made):
    text = made.canonical()
    again = Experiment.of(text)
    assert again.canonical() == text and again.digest == made.digest and repr(again) == repr(made)
    plain = json.loads(text)
    assert plain["schema"] == experiment.SCHEMA
    assert text == json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert from_json(made.to_json()).digest == made.digest
    assert (
        len(made.digest) == 64 and Experiment.of(json.dumps(plain, indent=2)).digest == made.digest
    )


@each
def test_a_repr_can_be_pasted_back(made):
    names = {**vars(lf.stimuli), **vars(lf.networks), **vars(lf.marginals), **vars(lf.theory)}
    names |= {
        name: getattr(lf, name) for name in ("Discrimination", "Experiment", "Solution", "Training")
    }
    assert eval(repr(made), names).digest == made.digest


def test_a_repr_of_a_large_array_says_so_and_the_canonical_text_is_whole():
    made = MANY["initial"].replace(initial=np.arange(2048.0).reshape(256, 1, 8))
    assert "initial=<array of shape (256, 1, 8)>" in repr(made)
    np.testing.assert_array_equal(Experiment.of(made.canonical()).initial, made.initial)


def test_digests_do_not_differ_between_processes():
    """They are those of another process, whatever its hash seed."""
    texts = [made.canonical() for made in MANY.values()]
    program = "import json, sys, localfields as lf\nprint([lf.Experiment.of(t).digest for t in json.load(sys.stdin)])"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.replace("'", '"'))
    assert found == [made.digest for made in MANY.values()]
    assert len(set(found)) == len(found)


def shuffled(plain):
    if isinstance(plain, dict):
        return {key: shuffled(plain[key]) for key in sorted(plain, reverse=True)}
    return [shuffled(one) for one in plain] if isinstance(plain, list) else plain


def whole_numbers(plain):
    """3.0 as 3, wherever that is the same number."""
    if isinstance(plain, dict):
        return {key: whole_numbers(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [whole_numbers(one) for one in plain]
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


@each
def test_digests_know_no_order_and_no_spelling_of_numbers(made):
    plain = json.loads(made.canonical())
    assert experiment_from(shuffled(plain)).digest == made.digest
    assert experiment_from(whole_numbers(plain)).digest == made.digest
    del plain["type"], plain["schema"]
    assert experiment_from(plain).digest == made.digest


def test_ways_to_write_the_same():
    same = [
        Training(steps=2000, learning_rate=1, seed=3, members=1),
        Training(steps=2000.0, learning_rate=1.0, seed=np.int64(3)),
        Training(1, 2000, seed=3),
        from_json({"type": "method/training", "steps": 2000, "learning_rate": 1, "seed": 3}),
    ]
    assert len({Experiment(ISING, method=one).digest for one in same}) == 1
    named = [
        Training(quantities=quantities)
        for quantities in (("loss", "ipr"), ["ipr", "loss"], ("ipr", "loss", "ipr"))
    ]
    assert len({Experiment(ISING, method=one).digest for one in named}) == 1
    seeds = [Training(seed=seed) for seed in ((5, 9), [5, 9], np.array([5, 9]), (5.0, 9))]
    assert len({Experiment(ISING, method=one).digest for one in seeds}) == 1
    zeros = [Experiment(ISING.replace(l2=zero), initial=[[zero] * 8]) for zero in (0, 0.0, -0.0)]
    assert len({one.digest for one in zeros}) == 1 and len({repr(one) for one in zeros}) == 1
    large = Experiment(ISING, method=Training(seed=2**63 - 1))
    assert Experiment.of(large.canonical()).method.seed == 2**63 - 1


CHANGES = {
    Training: {
        "learning_rate": 0.06,
        "steps": 13,
        "batch": 11,
        "members": 2,
        "seed": 1,
        "estimator": "exact",
        "optimizer": "adam",
        "stop_tol": 0.1,
        "every": 4,
        "quantities": ("loss",),
        "evaluate": 11,
    },
    Solution: {
        "theory": lf.theory.ExactIsing(),
        "times": [0.0, 1.0],
        "until": 2.0,
        "stop_tol": 0.1,
        "members": 2,
        "seed": 1,
        "tolerance": 1e-7,
        "solver": "stiff",
    },
    Experiment: {
        "task": NLGP,
        "network": lf.networks.SingleNeuron(),
        "method": Training(),
        "initial": np.ones((1, 8)),
        "precision": "float64",
    },
    lf.Discrimination: {
        "stimuli": ISING.stimuli[::-1],
        "labels": "signs",
        "proportions": (0.25, 0.75),
        "loss": "absolute",
        "l1": 0.1,
        "l2": 0.1,
    },
    lf.stimuli.Ising: {"shape": (9,), "coupling": 0.31},
}


def test_every_field_changes_the_digest():
    base = Experiment(ISING, NEURON, QUICK)
    solution = base.replace(method=Solution())
    digests = [base.digest, solution.digest]
    for cls, changes in CHANGES.items():
        assert list(changes) == [field.name for field in fields(cls)], (
            cls
        )  # a new field must be entered here
    digests += [
        base.replace(method=QUICK.replace(**{k: v})).digest for k, v in CHANGES[Training].items()
    ]
    digests += [
        solution.replace(method=Solution(**{k: v})).digest for k, v in CHANGES[Solution].items()
    ]
    digests += [base.replace(**{k: v}).digest for k, v in CHANGES[Experiment].items()]
    digests += [
        base.replace(task=ISING.replace(**{k: v})).digest
        for k, v in CHANGES[lf.Discrimination].items()
    ]
    first, second = ISING.stimuli  # of unlike couplings, which they must keep
    both = [
        (first.replace(shape=(9,)), second.replace(shape=(9,))),
        (first.replace(coupling=0.31), second),
    ]
    digests += [base.replace(task=lf.Discrimination(*classes)).digest for classes in both]
    tiny = np.nextafter(0.05, 1)
    digests.append(base.replace(method=QUICK.replace(learning_rate=tiny)).digest)  # to the last bit
    digests.append(base.replace(method=QUICK.replace(seed=(0,))).digest)
    assert len(set(digests)) == len(digests)


def test_the_schema_changes_the_digest(monkeypatch):
    before = MANY["ising"].digest
    monkeypatch.setattr(experiment, "SCHEMA", 3)
    assert MANY["ising"].digest != before
    assert (
        Experiment.of(MANY["ising"].canonical()).digest == MANY["ising"].digest
    )  # older and present ones are read


# -- mistakes --------------------------------------------------------------------------------------


TEXTS = [
    ("", "An experiment must be a JSON object, and this is not valid JSON"),
    ("{", "not valid JSON"),
    ("[" * 100_000, "not valid JSON"),
    ("3", "An experiment must be an object with `task`, `network` and `method`, got 3"),
    ("[]", "an object with `task`"),
    (
        '{"schema": 3}',
        "An experiment has schema 3, and this version reads at most 2. It was written by a newer",
    ),
    ('{"schema": "1"}', "An experiment has schema"),
    ('{"schema": true}', "An experiment has schema"),
    ('{"schema": 0}', "An experiment has schema"),
    ('{"taks": {}}', "Did you mean 'task'?"),
    ('{"type": "task/discrimination"}', "An experiment was expected, got a task"),
    ('{"type": "method/trainig"}', "Did you mean 'training'?"),
    ('{"type": ["x"]}', "The `type` of a specification"),
    ('{"method": "trainig"}', "Did you mean 'training'?"),
    ('{"method": {"type": "network/committee"}}', "`method` must be a method"),
    ('{"method": {"type": "method/training", "stesp": 3}}', "Did you mean 'steps'?"),
    ('{"task": 3}', "`task` must be a task, got 3"),
    ('{"initial": "x"}', "`initial` must be an array of numbers"),
    ('{"initial": [1, [2]]}', "`initial` must be an array of numbers"),
    ('{"initial": [NaN]}', "`initial` contains 1 value that is nan or infinite"),
]


@pytest.mark.parametrize(("text", "words"), TEXTS, ids=[text[:40] for text, _ in TEXTS])
def test_texts_that_are_no_experiments(text, words):
    with pytest.raises(InputError) as told:
        Experiment.of(text)
    assert words in str(told.value)


FIELDS = [
    (Training, {"steps": 0}, "`steps` must be at least 1, got 0."),
    (Training, {"steps": 1.5}, "`steps` must be a whole number, got 1.5."),
    (Training, {"learning_rate": -1}, "`learning_rate` must be positive"),
    (Training, {"seed": -1}, "`seed` must be at least 0, got -1."),
    (Training, {"seed": 2**63}, "`seed` must be at most 9223372036854775807"),
    (Training, {"seed": "x"}, "`seed` must be a whole number"),
    (Training, {"seed": []}, "`seed` must be a whole number"),
    (Training, {"seed": [1, [2]]}, "`seed` must be a whole number"),
    (Training, {"seed": [[1, 2]]}, "`seed` must be a whole number"),
    (Training, {"seed": (True, False)}, "`seed` must be a whole number"),
    (Training, {"estimator": "exakt"}, "Did you mean 'exact'?"),
    (Training, {"optimizer": "adm"}, "Did you mean 'adam'?"),
    (
        Training,
        {"quantities": "loss"},
        "`quantities` must be a list of names, such as ['weights'], got 'loss'.",
    ),
    (Training, {"quantities": ["los"]}, "Did you mean 'loss'?"),
    (Training, {"quantities": [["loss"]]}, "Unknown name in `quantities` "),
    (Training, {"stop_tol": [0.1, 0.2]}, "`stop_tol` must be one number"),
    (Training, {"stop_tol": -0.1}, "`stop_tol` must be zero or positive"),
    (Solution, {"until": [1, 2]}, "`until` must be one number"),
    (Solution, {"stop_tol": [0.1]}, "`stop_tol` must be one number"),
    (Solution, {"tolerance": 1}, "`tolerance` must be above 1e-14 and below 0.1"),
    (Solution, {"tolerance": [1e-3, 1e-4]}, "`tolerance` must be one number"),
    (Solution, {"theory": "exakt-ising"}, "Did you mean 'exact-ising'?"),
    (Solution, {"seed": (1, (2,))}, "`seed` must be a whole number"),
    (Experiment, {"precision": "float16"}, "Unknown `precision` 'float16'"),
    (
        Experiment,
        {"method": Training},
        "`method` must be a method, got the class Training. Call it: Training().",
    ),
    (Experiment, {"network": ISING}, "`network` must be a network"),
]


@pytest.mark.parametrize(
    ("cls", "given", "words"), FIELDS, ids=[f"{c.__name__} {g}"[:60] for c, g, _ in FIELDS]
)
def test_mistakes(cls, given, words):
    with pytest.raises(InputError) as told:
        cls(**given)
    assert words in str(told.value)


def test_methods_are_registered():
    assert registered("method") == {"fit": Fit, "solution": Solution, "training": Training}
    assert all(issubclass(one, Method) for one in registered("method").values())


# -- carried out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_training_is_train(precision):
    """At the experiment's own precision, whatever JAX is set to: a digest names one result."""
    made = MANY["ising"].replace(precision=precision)
    record = lf.Record(3, evaluate=10)
    with jax.enable_x64(precision == "float64"):
        expected = lf.train(ISING, NEURON, steps=12, batch=10, members=1, record=record)
    for setting in (True, False):
        with jax.enable_x64(setting):
            found = made.run()
            assert jax.numpy.zeros(()).dtype == ("float64" if setting else "float32")  # as it was
        assert found.experiment == expected.experiment and found.manifest["precision"] == precision
        for name in expected.series:
            assert found.series[name].dtype == precision
            np.testing.assert_array_equal(found.series[name], expected.series[name])


RESULTS = {
    "train": lambda: lf.train(
        ISING,
        NEURON,
        steps=12,
        batch=10,
        seed=(5, 9),
        record=lf.Record(3, ("loss", "weights"), 10),
        initial=np.linspace(-1, 1, 8)[None],
    ),
    "train swept": lambda: lf.train(
        ISING.replace(l2=[0.0, 0.3]), NEURON, steps=4, batch=10, learning_rate=[0.1, 0.2]
    ),
    "solve": lambda: lf.solve(ISING, lf.theory.ExactIsing(), network=NEURON, until=3.0, members=2),
    "solve at times": lambda: lf.solve(
        ISING,
        lf.theory.ExactIsing(),
        initial=np.ones((2, 1, 8)),
        times=[[0.0, 0.5], [0.0, 1.0]],
        solver="stiff",
    ),
    "fit": lambda: Fit(lf.baselines.PCA(4), samples=50, members=2).run(ISING, NEURON, None),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_which_experiment_made_it(name):
    """Of whatever verb: the experiment that is read from a result makes the same result again."""
    with jax.enable_x64(False):
        found = RESULTS[name]()
    made = experiment_from(found.experiment)
    assert made.to_json() == found.experiment
    assert found.method == name_of(type(made.method)) != ""
    again = made.run()
    assert again.experiment == found.experiment
    for part in found.series:
        np.testing.assert_array_equal(again.series[part], found.series[part])
    np.testing.assert_array_equal(again.times, found.times)


def test_every_field_reaches_training():
    settings = {"learning_rate": 0.5, "steps": 25, "batch": 12, "members": 2, "seed": 1}
    settings |= {"estimator": "orbit", "optimizer": "adam", "stop_tol": 0.5}
    method = Training(**settings, every=4, quantities=("loss", "ipr"), evaluate=11)
    assert all(getattr(method, one.name) != one.default for one in fields(Training))
    found = Experiment(ISING, NEURON, method).run()
    with jax.enable_x64(False):
        record = lf.Record(4, ("loss", "ipr"), 11)
        expected = lf.train(ISING, NEURON, **settings, record=record)
    assert found.experiment == expected.experiment
    assert found.stopped == expected.stopped == "at rest"
    assert set(found.series) == set(expected.series) == {"loss", "ipr"}
    np.testing.assert_array_equal(found.final, expected.final)
    np.testing.assert_array_equal(found.loss, expected.loss)


@pytest.mark.parametrize("estimator", ["independent", "exact"])
def test_a_list_of_seeds_is_the_runs_alone(estimator, key):
    rng = np.random.default_rng(np.asarray(key._base_array))
    seeds = (5, 9, *rng.integers(2**40, size=1).tolist())
    base = Experiment(ISING, NEURON, QUICK.replace(estimator=estimator))
    together = base.replace(method=base.method.replace(seed=seeds)).run()
    assert together.num_members == 3
    for m, seed in enumerate(seeds):
        alone = base.replace(method=base.method.replace(seed=seed)).run()
        np.testing.assert_array_equal(together.initial[m], alone.initial[0])
        np.testing.assert_array_equal(together.weights[m], alone.weights[0])
        np.testing.assert_array_equal(together.final[m], alone.final[0])
    for one, other in itertools.combinations(range(3), 2):
        assert not np.isclose(together.initial[one], together.initial[other]).any()
    with pytest.raises(InputError, match="`seed` has 3, `members` has 2"):
        base.replace(method=base.method.replace(seed=seeds, members=2)).run()


def test_given_fields(key):
    fields = (
        np.random.default_rng(np.asarray(key._base_array)).normal(size=(2, 1, 8)).astype(np.float32)
    )
    made = Experiment(ISING, NEURON, QUICK.replace(members=2), initial=fields)
    found = made.run()
    np.testing.assert_array_equal(found.initial, fields)
    np.testing.assert_array_equal(Experiment.of(made.canonical()).run().final, found.final)
    both = made.replace(initial=fields[0]).run()
    np.testing.assert_array_equal(both.initial, np.stack([fields[0]] * 2))
    np.testing.assert_array_equal(both.weights[0], found.weights[0])
    with pytest.raises(
        InputError, match=r"`initial` must have shape \(1, 8\) or \(2, 1, 8\), got \(8,\)"
    ):
        made.replace(initial=fields[0, 0]).run()


SOLUTIONS = {
    "to a time": {"until": 4.0},
    "times": {"times": (0.0, 0.5, 2.0)},
    "to rest": {"stop_tol": 0.05, "tolerance": 1e-4},
}


@pytest.mark.parametrize("more", SOLUTIONS.values(), ids=SOLUTIONS)
def test_solutions_are_stored_and_loaded(more, tmp_path):
    method = Solution(lf.theory.ExactIsing(), members=2, seed=3, **more)
    made, store = Experiment(ISING, NEURON, method), Store(tmp_path)
    found = lf.run_or_load(made, store)
    again = lf.run_or_load(Experiment.of(made.canonical()), store)
    with jax.enable_x64(False):  # first fields are drawn as for training
        expected = lf.solve(
            ISING, lf.theory.ExactIsing(), network=NEURON, members=2, seed=3, **more
        )
    for one in (found, again):
        np.testing.assert_array_equal(one.weights, expected.weights)
        np.testing.assert_array_equal(one.times, expected.times)
        assert list(one.events) == list(expected.events) and one.experiment == expected.experiment
    assert found.num_members == 2 and store.verify_all() == [] and store.digests() == [made.digest]
    for name in more:  # each of them matters
        other = made.replace(method=method.replace(**{name: getattr(Solution(), name)})).run()
        assert other.weights.shape != found.weights.shape or (other.weights != found.weights).any()
    given = made.replace(initial=found.initial, method=method.replace(seed=4))
    np.testing.assert_array_equal(lf.run_or_load(given, store).initial, found.initial)
