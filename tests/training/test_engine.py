"""The engine: reruns, ensembles, records, outcomes, cancelling, resting, optimizers and
schedules.
"""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import localfields as lf
from localfields import _registry
from localfields._prng import member_keys
from localfields._spec import number
from localfields.fields import Lattice, Real, declare
from localfields.stimuli.base import LATTICE, Stimulus
from localfields.training import engine, loop
from localfields.trajectory import inverse_participation_ratio, peak_position

from .helpers import gaussians, run, trained_by_hand


@pytest.fixture
def every_record(monkeypatch):
    """Progress and cancel are looked at after each record, whatever the clock says."""
    monkeypatch.setattr(loop, "POLL_INTERVAL", 0.0)


# -- the same again --------------------------------------------------------------------------------


def test_reruns_are_bit_identical(seed):
    one, two, other = run(seed=seed), run(seed=seed), run(seed=seed + 1)
    for name in one.series:
        np.testing.assert_array_equal(one.series[name], two.series[name])
    np.testing.assert_array_equal(one.final, two.final)
    assert (
        not np.isclose(one.initial, other.initial).any()
        and not np.isclose(one.final, other.final).any()
    )


def test_a_member_does_not_depend_on_the_others(seed):
    few, many = run(seed=seed, members=1), run(seed=seed, members=3)
    np.testing.assert_array_equal(few.initial, many.initial[:1])
    np.testing.assert_array_equal(few.weights, many.weights[:1])
    assert len(np.unique(many.final[:, 0, 0])) == 3
    # One that ran beside faster ones, too.
    beside = run(seed=seed, members=3, learning_rate=[0.05, 0.1, 0.2])
    np.testing.assert_array_equal(few.weights, beside.weights[:1])
    assert not np.isclose(beside.final[1:], many.final[1:]).all()


def test_chunks_do_not_matter(seed):
    runs = {
        every: run(seed=seed, every=every, quantities=("weights", "loss"))
        for every in (1, 7, 50, 1000)
    }
    assert {every: found.steps.tolist() for every, found in runs.items()} == {
        1: list(range(51)),
        7: [*range(0, 50, 7), 50],
        50: [0, 50],
        1000: [0, 50],
    }
    finest = runs[1]
    for found in runs.values():
        np.testing.assert_array_equal(found.final, finest.final)
        np.testing.assert_array_equal(found.weights, finest.weights[:, found.steps])
        np.testing.assert_array_equal(found.loss, finest.loss[:, found.steps])
        np.testing.assert_allclose(found.times, 0.05 * found.steps, rtol=1e-14)


def test_members_follow_their_own_streams_by_hand(seed):
    found = run(seed=seed, every=1, steps=10)
    network = lf.networks.SingleNeuron(init_scale=0.1)
    for member in range(3):
        descend = lambda gradient, params, step: jax.tree.map(lambda g: -0.05 * g, gradient)  # noqa: E731
        settings = {"seed": seed, "member": member, "steps": 10, "batch": 10}
        by_hand = trained_by_hand(gaussians(), network, **settings, change=descend)
        np.testing.assert_allclose(found.weights[member], by_hand, rtol=0, atol=1e-13)


def test_a_swept_number_is_each_member_s_own(seed):
    scales, rates = np.array([0.1, 0.4, 0.9]), np.array([0.02, 0.05, 0.1])
    neuron = lf.networks.SingleNeuron
    offsets = np.array([-1.0, 0.0, 1.0])

    def task(offset):
        return lf.Discrimination(
            lf.stimuli.Gaussian((8,), xi=0.6, offset=offset), lf.stimuli.Gaussian((8,), xi=1.1)
        )

    together = run(
        task(offsets), neuron(init_scale=scales), learning_rate=rates, seed=seed, members=None
    )
    assert together.num_members == 3
    for m in range(3):
        alone = run(
            task(offsets[m]), neuron(init_scale=scales[m]), learning_rate=rates[m], seed=seed
        )
        np.testing.assert_allclose(together.weights[m], alone.weights[m], rtol=1e-10)
        np.testing.assert_allclose(together.times[m], alone.times, rtol=1e-14)


def test_initial_fields_are_given(seed):
    one = np.cos(np.arange(8.0))[None]
    each = np.stack([one, 2 * one, 3 * one])
    common, own = run(seed=seed, initial=one), run(seed=seed, initial=each.tolist())
    np.testing.assert_array_equal(common.initial, np.stack([one] * 3))
    np.testing.assert_array_equal(own.initial, each)
    np.testing.assert_array_equal(own.weights[:, 0], each)
    np.testing.assert_array_equal(own.weights[0], common.weights[0])


# -- members that go wrong -------------------------------------------------------------------------


def test_a_diverging_member_says_so_and_spoils_no_other(seed):
    good, bad = (run(seed=seed, every=1, learning_rate=[0.05, rate, 0.05]) for rate in (0.05, 1e3))
    assert [one.kind for one in good.outcome] == ["ok"] * 3
    for member in (0, 2):
        np.testing.assert_array_equal(bad.weights[member], good.weights[member])
        assert bad.outcome[member] == good.outcome[member]
    by_hand = trained_by_hand(
        gaussians(),
        lf.networks.SingleNeuron(init_scale=0.1),
        seed=seed,
        member=1,
        steps=10,
        batch=10,
        change=lambda gradient, params, step: jax.tree.map(lambda g: -1e3 * g, gradient),
    )
    stop = int(np.argmax(np.abs(by_hand).max(axis=(1, 2)) >= engine.DIVERGED_WEIGHT))
    assert 1 <= stop <= 10
    assert bad.outcome[1].kind == "diverged" and bad.outcome[1].step == stop
    assert f"member 1 diverged at step {stop}" in repr(bad)
    np.testing.assert_allclose(bad.weights[1, :stop], by_hand[:stop], rtol=1e-9)
    last = bad.weights[1, stop - 1]
    np.testing.assert_array_equal(
        bad.weights[1, stop:], np.broadcast_to(last, bad.weights[1, stop:].shape)
    )
    assert np.abs(bad.final).max() < engine.DIVERGED_WEIGHT


@pytest.fixture
def faulty():
    """A stimulus, known for the time of the test, some of whose batches are not numbers."""

    class Faulty(Stimulus):
        shape: Lattice = declare(LATTICE, default=(8,))
        chance: Real = number(
            default=0.0, low=0, high=1, closed=True, help="how often a batch is not a number"
        )

        def draw(self, key, num):
            white = jax.random.normal(key, (num, self.size))
            return jnp.where(
                jax.random.uniform(jax.random.fold_in(key, 1)) < self.chance, jnp.nan, white
            )

        def covariance(self):
            return np.eye(1, self.size)[0]

        def marginal(self):
            return lf.marginals.Normal()

    yield Faulty
    del _registry.CLASSES["stimulus"]["faulty"]


def test_a_member_that_meets_nan_stops_there(faulty, seed):
    chances = np.array([0.0, 0.2, 1.0, 0.0])
    task = lf.Discrimination(faulty((8,), chances), lf.stimuli.Gaussian((8,), xi=0.6))
    found = run(task, members=4, seed=seed, every=1)
    keys = member_keys(seed, 4, 0)

    def meets_nan(key, step):
        first = jax.random.split(jax.random.fold_in(key, step), 2)[0]
        return jax.random.uniform(jax.random.fold_in(first, 1)) < 0.2

    # Later batches of the second member are numbers again: it must stay where it stopped.
    steps = np.asarray(jax.vmap(lambda step: meets_nan(keys[1], step))(jnp.arange(50)))
    stop = int(np.argmax(steps)) + 1
    assert steps.any() and not steps.all()
    assert [str(one) for one in found.outcome] == [
        "ok",
        f"non-finite at step {stop}",
        "non-finite at step 1",
        "ok",
    ]
    assert np.isfinite(found.weights).all()
    for member, last in ((1, stop - 1), (2, 0)):
        rest = found.weights[member, last:]
        np.testing.assert_array_equal(rest, np.broadcast_to(rest[:1], rest.shape))
    assert np.array_equal(found.weights[1, 0], found.weights[1, stop - 1]) == (stop == 1)
    assert not np.array_equal(found.weights[0, 0], found.weights[0, -1])
    without = run(
        lf.Discrimination(faulty((8,), 0 * chances), lf.stimuli.Gaussian((8,), xi=0.6)),
        members=4,
        seed=seed,
        every=1,
    )
    for member in (0, 3):
        np.testing.assert_array_equal(found.weights[member], without.weights[member])


# -- cancel, rest, progress ------------------------------------------------------------------------


def check_prefix(stopped, whole, records):
    assert stopped.stopped == "cancelled" and len(stopped.steps) == records
    np.testing.assert_array_equal(stopped.steps, whole.steps[:records])
    np.testing.assert_array_equal(stopped.times, whole.times[:records])
    np.testing.assert_array_equal(stopped.weights, whole.weights[:, :records])
    np.testing.assert_array_equal(stopped.final, whole.weights[:, records - 1])
    assert "cancelled" in repr(stopped)


def test_cancel_keeps_what_was_recorded(seed, every_record):
    answers = iter([False, False, True])
    check_prefix(run(seed=seed, cancel=lambda: next(answers)), run(seed=seed), records=4)


def interrupting(at):
    """For `on_progress`: Ctrl-C when a step is reached."""

    def interrupt(progress):
        if progress.step == at:
            raise KeyboardInterrupt

    return interrupt


def test_interrupt_keeps_what_was_recorded(seed, every_record):
    with pytest.raises(lf.TrainingInterrupted, match="Interrupted at step 20.*trajectory") as stop:
        run(seed=seed, on_progress=interrupting(20))
    assert isinstance(stop.value, KeyboardInterrupt)
    check_prefix(stop.value.trajectory, run(seed=seed), records=3)


def test_interrupt_ends_a_loop_of_runs(seed, every_record):
    """Also if it comes at the very end of a run."""
    finished = []
    with pytest.raises(KeyboardInterrupt) as stop:
        for _ in range(3):
            finished.append(run(seed=seed, on_progress=interrupting(50)))
    assert not finished and stop.value.trajectory.stopped == "finished"
    np.testing.assert_array_equal(stop.value.trajectory.weights, run(seed=seed).weights)


def test_other_errors_are_not_swallowed(every_record):
    with pytest.raises(ZeroDivisionError):
        run(on_progress=lambda progress: 1 / 0)


def test_progress_tells_where_a_run_is(seed, every_record):
    told = []
    found = run(
        seed=seed,
        steps=45,
        quantities=("weights", "loss"),
        learning_rate=[0.02, 0.04, 0.06],
        on_progress=told.append,
    )
    assert [progress.step for progress in told] == [0, 10, 20, 30, 40, 45]
    assert {(progress.steps, progress.record_bytes) for progress in told} == {
        (45, found.manifest["record_bytes"])
    }
    np.testing.assert_allclose([progress.time for progress in told], found.times.mean(axis=0))
    seconds = [progress.seconds for progress in told]
    assert seconds == sorted(seconds) and seconds[1] > 0
    for index, progress in enumerate(told):
        np.testing.assert_allclose(progress.ipr, found.ipr[:, index], rtol=1e-12)
        np.testing.assert_array_equal(progress.loss, found.loss[:, index])
    for progress in told[1:]:
        assert progress.rate == progress.step / progress.seconds
        assert progress.seconds_left == pytest.approx((45 - progress.step) / progress.rate)
    assert told[0].seconds_left == np.inf and told[-1].seconds_left == 0
    run(seed=seed, on_progress=told.append)
    assert told[-1].loss is None


def bowl(task, network, params):
    """L = |w − c|²/2: after one unit of flow time e⁻¹ of the distance is left."""
    off = params["weights"] - jnp.cos(jnp.arange(8.0))[None]
    return 0.5 * jnp.sum(off**2), {"weights": off}


def test_rest_ends_a_run_early(offer):
    offer(bowl)
    center = np.cos(np.arange(8.0))[None]
    settings = {"estimator": "exact", "steps": 400, "initial": 0 * center}
    there = run(**settings | {"initial": center}, stop_tol=1e-3)
    assert (there.stopped, there.steps.tolist()) == ("at rest", [0, 10])
    whole = run(**settings)
    for rest in (1e-1, 1e-3):
        early = run(**settings, stop_tol=rest)
        w = whole.weights.reshape(3, -1, 8)
        speed = (
            np.linalg.norm(np.diff(w, axis=1), axis=-1)
            / np.linalg.norm(w[:, 1:], axis=-1)
            / np.diff(whole.times)
        )
        expected = 2 + int(np.argmax((speed <= rest).all(axis=0)))
        assert early.stopped == "at rest" and len(early.steps) == expected < len(whole.steps)
        np.testing.assert_array_equal(early.weights, whole.weights[:, :expected])
        np.testing.assert_array_equal(early.final, early.weights[:, -1])
    assert run(**settings, stop_tol=0.0).stopped == whole.stopped == "finished"


def test_rest_waits_for_every_member_and_knows_the_schedule(offer):
    offer(bowl)
    center = np.cos(np.arange(8.0))[None]
    fields = np.stack([center, center, 0 * center])
    found = run(estimator="exact", steps=400, initial=fields, stop_tol=1e-3)
    assert found.stopped == "at rest" and len(found.steps) > 10
    rates = optax.constant_schedule(0.05)
    scheduled = run(
        estimator="exact", steps=400, initial=fields, stop_tol=1e-3, learning_rate=rates
    )
    np.testing.assert_array_equal(found.steps, scheduled.steps)


# -- records ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ((8,), (3, 4)), ids=str)
def test_reducers_are_functions_of_the_weights(shape, seed):
    ring, torus = (
        gaussians(),
        lf.Discrimination(*[lf.stimuli.Gaussian((3, 4), xi=0.3 * n) for n in (1, 2)]),
    )
    neuron, committee = (
        lf.networks.SingleNeuron(init_scale=0.1),
        lf.networks.Committee(2, init_scale=0.1),
    )
    task, network = (ring, neuron) if shape == (8,) else (torus, committee)
    found = run(task, network, seed=seed, quantities=("weights", "ipr", "norm", "peak"))
    assert found.weights.shape == (3, 6, network.hidden, *shape)
    flat = found.weights.reshape(3, 6, network.hidden, -1)
    np.testing.assert_allclose(
        found.series["ipr"], inverse_participation_ratio(flat, 1), rtol=1e-12
    )
    np.testing.assert_allclose(found.series["norm"], np.linalg.norm(flat, axis=-1), rtol=1e-12)
    np.testing.assert_array_equal(found.series["peak"], peak_position(found.weights, len(shape)))
    reduced = run(task, network, seed=seed, quantities=("ipr", "peak"))
    np.testing.assert_allclose(reduced.ipr, found.ipr, rtol=1e-12)
    np.testing.assert_array_equal(reduced.peak, found.peak)
    np.testing.assert_array_equal(reduced.final, found.final)
    assert reduced.series.keys() == {"ipr", "peak"}


def test_parameters_a_network_has_are_recorded(seed):
    everything = lf.Record().quantities
    found = run(network=lf.networks.TwoLayer(2, init_scale=0.1), seed=seed, quantities=everything)
    assert {name: values.shape for name, values in found.series.items()} == {
        "weights": (3, 6, 2, 8),
        "biases": (3, 6, 2),
        "readout": (3, 6, 1, 2),
        "readout_bias": (3, 6, 1),
        "loss": (3, 6),
        "accuracy": (3, 6),
    }
    assert run(quantities=everything).series.keys() == {"weights", "loss", "accuracy"}
    check_xarray(found)


def test_accuracy_where_classes_share_a_label():
    """A silent neuron answers 0, which is right for two of the three classes."""
    stimuli = [lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 0.8, 1.1)]
    task = lf.Discrimination(*stimuli, labels=(1, 0, 0))
    silent = np.zeros((1, 8))
    found = run(task, steps=1, batch=12, quantities=("accuracy",), initial=silent)
    np.testing.assert_allclose(found.series["accuracy"][:, 0], 2 / 3, rtol=1e-6)


def check_xarray(found):
    data = found.to_xarray()
    assert dict(data.sizes) == {"member": 3, "time": 6, "neuron": 2, "x": 8, "output": 1}
    for name, values in found.series.items():
        np.testing.assert_array_equal(data[name].to_numpy(), values)
    again = json.loads(data.attrs["experiment"])
    assert again == found.experiment
    assert repr(lf.from_json(again["task"])) == repr(gaussians())
    assert repr(lf.from_json(again["network"])) == repr(lf.networks.TwoLayer(2, init_scale=0.1))


@pytest.mark.parametrize(
    "quantities", (("weights", "loss"), ("ipr", "norm", "peak"), ("accuracy",), ()), ids=str
)
def test_memory_is_known_beforehand(quantities, seed):
    found = run(seed=seed, quantities=quantities, every=7)
    assert found.manifest["record_bytes"] == sum(values.nbytes for values in found.series.values())


def test_too_much_memory_is_refused_before_anything_runs():
    before = engine.TRACES["advance"]
    with pytest.raises(
        lf.InputError,
        match=r"records of this run would take 19.2 GB of memory; at most 4 GB are allowed. Record less",
    ):
        run(steps=10**8, every=1, batch=14)
    assert engine.TRACES["advance"] == before
    assert run(steps=1, quantities=("ipr",)).stopped == "finished"


def test_zero_fields_have_no_ipr(seed):
    # A field of zeros is where the ratio is 0/0, in the record as in the trajectory.
    found = run(seed=seed, steps=1, initial=np.zeros((1, 8)), quantities=("weights", "ipr"))
    assert (
        np.isnan(found.ipr[:, 0]).all()
        and np.isnan(inverse_participation_ratio(found.weights[:, 0], 1)).all()
    )
    assert "final IPR" in repr(found)


def test_what_is_said_of_a_run(seed):
    found = run(seed=seed, members=None)
    assert found.num_members == 1
    method = lf.Training(0.05, 50, 10, 1, seed, quantities=("weights",), evaluate=20)
    network = lf.networks.SingleNeuron(init_scale=0.1)
    assert found.method == "training"
    assert (
        found.experiment
        == lf.Experiment(gaussians(), network, method, precision="float64").to_json()
    )
    manifest = found.manifest
    assert manifest["localfields"] == lf.__version__ and manifest["jax"] == jax.__version__
    assert manifest["precision"] == "float64" and manifest["matmul_precision"] == "highest"
    assert manifest["run_seconds"] >= 0 and manifest["compile_seconds"] >= 0 and manifest["device"]
    assert repr(found).startswith(
        "Trajectory: 1 members × 6 records × 1 neurons on (8,), flow time 0 … 2.5\n"
    )


def test_single_precision_is_the_default(seed):
    with jax.enable_x64(False):
        found = run(seed=seed)
    assert found.manifest["precision"] == "float32" and found.weights.dtype == np.float32
    # Times and rates are what was asked for, not their float32 neighbors.
    assert found.times.tolist() == [0.05 * step for step in found.steps]
    assert found.experiment["method"]["learning_rate"] == 0.05


# -- optimizers and schedules ----------------------------------------------------------------------

OPTIMIZERS = {
    "adam": ("adam", lambda rate: optax.adam(rate)),
    "momentum": (
        functools.partial(optax.sgd, momentum=0.9),
        lambda rate: optax.sgd(rate, momentum=0.9),
    ),
    "momentum by name": ("sgd:momentum=0.9", lambda rate: optax.sgd(rate, momentum=0.9)),
    "options by name": (
        "adam:nesterov=true,b1=0.8",
        lambda rate: optax.adam(rate, b1=0.8, nesterov=True),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_is_optax_s_own(name, seed):
    given, make = OPTIMIZERS[name]
    found = run(seed=seed, optimizer=given, steps=12, every=1, learning_rate=[0.02, 0.05, 0.1])
    for member, rate in ((0, 0.02), (2, 0.1)):
        transform = make(rate)
        memory = None

        def change(gradient, params, step, transform=transform):
            nonlocal memory
            updates, memory = transform.update(
                gradient, memory if step else transform.init(params), params
            )
            return updates

        settings = {"seed": seed, "member": member, "steps": 12, "batch": 10, "change": change}
        by_hand = trained_by_hand(gaussians(), lf.networks.SingleNeuron(init_scale=0.1), **settings)
        np.testing.assert_allclose(found.weights[member], by_hand, rtol=0, atol=1e-11)
    plain = run(seed=seed, steps=12, every=1, learning_rate=[0.02, 0.05, 0.1])
    assert np.abs(found.weights - plain.weights).max() > 1e-3


def test_schedule_is_a_rate_for_every_step(seed):
    rates = optax.piecewise_constant_schedule(0.1, {20: 0.5, 35: 0.1})
    found = run(seed=seed, learning_rate=rates, every=1)
    each = np.array([0.1] * 20 + [0.05] * 15 + [0.005] * 15)
    np.testing.assert_allclose(np.diff(found.times), each, rtol=1e-12)
    np.testing.assert_allclose(found.times, np.append(0, np.cumsum(each)), rtol=1e-12)
    np.testing.assert_allclose(
        found.weights[:, :21],
        run(seed=seed, learning_rate=0.1, every=1).weights[:, :21],
        atol=1e-13,
    )
    settings = {"seed": seed, "member": 2, "steps": 50, "batch": 10}
    change = lambda gradient, params, step: jax.tree.map(lambda g: -each[step] * g, gradient)  # noqa: E731
    by_hand = trained_by_hand(
        gaussians(), lf.networks.SingleNeuron(init_scale=0.1), **settings, change=change
    )
    np.testing.assert_allclose(found.weights[2], by_hand, rtol=0, atol=1e-12)
    assert found.experiment["method"]["learning_rate"] == "schedule"
    np.testing.assert_array_equal(
        run(seed=seed, learning_rate=rates, every=7).times, found.times[[*range(0, 50, 7), 50]]
    )


def test_swept_rates_have_times_of_their_own(seed):
    rates = np.array([0.02, 0.05, 0.1])
    found = run(seed=seed, learning_rate=rates)
    np.testing.assert_allclose(found.times, rates[:, None] * found.steps[None, :], rtol=1e-15)
    assert run(seed=seed, learning_rate=[0.05] * 3).times.shape == (3, 6)
    np.testing.assert_array_equal(run(seed=seed).weights[1], found.weights[1])
    assert found.to_xarray().flow_time.dims == ("member", "time")
    assert found.experiment["method"]["learning_rate"] == rates.tolist()
