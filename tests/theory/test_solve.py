"""`solve`: axes and starts of `train`, closed forms, symmetries, events, and one program for all
numbers.
"""

import functools
import inspect
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import localfields as lf
from localfields import _ensemble, _registry
from localfields.errors import InputError
from localfields.theory import _integrate, base
from localfields.trajectory import localized_from

N = 8
SLOPE = 1 / np.sqrt(2 * np.pi)
TIMES = np.linspace(0, 6, 11)
LINEAR = lf.theory.LinearResponse()


def gaussians(xi=(0.6, 1.1), **values):
    return lf.Discrimination(
        *[lf.stimuli.Gaussian((N,), xi=lengthscale) for lengthscale in xi], **values
    )


def neuron(**values):
    return lf.networks.SingleNeuron(**{"init_scale": 0.1} | values)


def solve(task=None, theory=LINEAR, **changes):
    """Three members and eleven records: most tests here share one program."""
    settings = {"network": neuron(), "times": TIMES}
    settings |= {} if {"initial", "members"} & set(changes) else {"members": 3}
    return lf.solve(task or gaussians(), theory, **settings | changes)


@functools.cache
def usual():
    return solve()


def random_fields(count=3, seed=0):
    return np.random.default_rng(seed).normal(scale=0.3, size=(count, 1, N))


# -- the axes and the start of `train` -------------------------------------------------------------


def small_run(**changes):
    settings = {
        "steps": 20,
        "batch": 4,
        "members": 3,
        "record": lf.Record(every=2, quantities=("weights", "loss")),
    }
    return lf.train(**{"task": gaussians(), "network": neuron()} | settings | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": 2**40 + 3},
        {"network": neuron(init="positive")},
        {"network": neuron(init="basis")},
        {"network": neuron(init_scale=np.array([0.1, 0.5, 2.0]))},
        {"initial": random_fields(1)[0]},
        {"initial": random_fields()},
        {"learning_rate": np.array([0.1, 0.2, 0.3])},
    ],
    ids=["plain", "seed", "positive", "basis", "scales", "one start", "starts", "rates"],
)
def test_axes_and_start_are_those_of_train(changes):
    run = small_run(**changes)
    given = {name: value for name, value in changes.items() if name != "learning_rate"}
    flow = solve(members=3, times=run.times, **given)
    assert flow.times.shape == run.times.shape and (flow.times == run.times).all()
    for name in ("weights", "loss"):
        assert (
            flow.series[name].shape == run.series[name].shape
            and flow.series[name].dtype == np.float64
        )
    assert flow.steps.shape == run.steps.shape and len(flow.outcome) == 3
    assert flow.final.shape == run.final.shape and flow.final.dtype == np.float64
    assert flow.weights.shape == (3, 11, 1, N)
    np.testing.assert_array_equal(flow.initial, run.initial)
    np.testing.assert_array_equal(flow.weights[:, 0], run.initial)
    np.testing.assert_array_equal(flow.weights[:, -1], flow.final)
    assert all(outcome.kind == "ok" for outcome in flow.outcome)


def test_every_member_has_its_own_times():
    rates = np.array([0.5, 1.0, 2.0])
    one = usual()
    flow = solve(times=rates[:, None] * TIMES)
    single = [solve(times=rate * TIMES).weights[m] for m, rate in enumerate(rates)]
    np.testing.assert_allclose(flow.weights, single, rtol=0, atol=1e-9)
    np.testing.assert_allclose(flow.weights[1], one.weights[1], rtol=0, atol=1e-9)
    assert np.abs(flow.weights[0] - one.weights[0]).max() > 1e-3
    assert flow.to_xarray().flow_time.dims == ("member", "time")


def test_without_x64_the_start_is_that_of_train_and_the_setting_stays():
    code = """
        import jax, jax.numpy as jnp, numpy as np, localfields as lf
        task = lf.Discrimination(*(lf.stimuli.Gaussian((8,), xi=xi) for xi in (0.6, 1.1)))
        network = lf.networks.SingleNeuron(init_scale=0.1)
        run = lf.train(task, network, steps=2, batch=4, members=3)
        assert run.initial.dtype == np.float32
        found = lf.solve(task, lf.theory.LinearResponse(), network=network, members=3, times=np.linspace(0, 6, 11))
        assert jnp.zeros(()).dtype == jnp.float32 and not jax.config.jax_enable_x64
        assert found.weights.dtype == found.loss.dtype == found.final.dtype == np.float64
        assert (found.initial == run.initial).all()
        print(*found.final.ravel().tolist())
    """
    output = _fresh(code)
    start = np.asarray(
        jax.random.normal(jax.random.key(0), (1,))
    )  # x64 is on here: the draws are others
    assert start.dtype == np.float64
    with jax.enable_x64(False):
        flow = solve()
        assert jnp.zeros(()).dtype == jnp.float32
    np.testing.assert_allclose(
        flow.final.ravel(), [float(word) for word in output.split()], rtol=1e-9
    )
    assert flow.final.dtype == np.float64


def _fresh(code):
    """What a new process with JAX's own settings prints."""
    lines = code.split("\n")
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir)
    }
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_ENABLE_X64": "0"}
    text = "\n".join(line[margin:] for line in lines)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- closed forms and symmetries -------------------------------------------------------------------


def modes():
    """The Fourier basis, and the spectra of the two classes in its order."""
    basis = lf.lattice.fourier_basis((N,))
    matrices = [lf.lattice.matrix(stimulus.covariance()) for stimulus in gaussians().stimuli]
    return basis, *[np.einsum("ik,ij,jk->k", basis, matrix, basis) for matrix in matrices]


def test_a_mode_relaxes_exponentially():
    # w = u·mode stays a mode: u̇ = m₁√λ₁ − ½(λ₀ + λ₁)u.
    basis, zero, one = modes()
    chosen, begin = [0, 1, N - 1], np.array([0.01, 0.5, 3.0])
    flow = solve(initial=(begin * basis[:, chosen]).T[:, None], tolerance=1e-10)
    rate, end = (zero + one)[chosen] / 2, SLOPE * np.sqrt(one[chosen]) / ((zero + one)[chosen] / 2)
    u = end + (begin - end) * np.exp(-rate * TIMES[:, None])  # (time, member)
    expected = np.einsum("tm,im->mti", u, basis[:, chosen])
    np.testing.assert_allclose(flow.weights[:, :, 0], expected, rtol=0, atol=1e-7 * begin.max())
    loss = 0.5 - SLOPE * np.sqrt(one[chosen]) * u + rate * u**2 / 2
    np.testing.assert_allclose(flow.loss, loss.T, rtol=1e-7)
    # Without the ½ of the mean covariance, say, it would relax elsewhere.
    wrong = end / 2 + (begin - end / 2) * np.exp(-2 * rate * TIMES[:, None])
    assert np.abs(wrong - u).max() > 0.05


def test_flow_of_a_shifted_or_turned_start_is_shifted_or_turned():
    start = random_fields()
    plain = solve(initial=start, tolerance=1e-11).weights
    for by in (1, 5):
        moved = solve(initial=np.roll(start, by, -1), tolerance=1e-11).weights
        np.testing.assert_allclose(moved, np.roll(plain, by, -1), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        solve(initial=-start, tolerance=1e-11).weights, -plain, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        solve(initial=start[:, :, ::-1], tolerance=1e-11).weights,
        plain[..., ::-1],
        rtol=0,
        atol=1e-9,
    )


def test_loss_never_grows():
    assert (np.diff(usual().loss, axis=1) < 0).all()


def test_error_falls_with_the_tolerance():
    best = solve(tolerance=1e-13).weights
    tolerances = np.array([1e-3, 1e-5, 1e-7, 1e-9])
    errors = np.array(
        [np.abs(solve(tolerance=tolerance).weights - best).max() for tolerance in tolerances]
    )
    assert (errors < 10 * tolerances).all() and (np.diff(errors) < 0).all()
    assert abs(np.polyfit(np.log(tolerances), np.log(errors), 1)[0] - 1) < 0.3


def test_both_solvers_agree():
    stiff = solve(solver="stiff", tolerance=1e-9)
    explicit = solve(solver="explicit", tolerance=1e-9)
    np.testing.assert_allclose(stiff.weights, explicit.weights, rtol=0, atol=1e-7)
    assert stiff.manifest["solver"] == "stiff" and usual().manifest["solver"] == "explicit"
    assert (stiff.weights != explicit.weights).any()


# -- ensembles -------------------------------------------------------------------------------------


def test_members_of_a_sweep_are_those_solved_one_by_one():
    xi, start = np.array([0.9, 1.1, 1.3]), random_fields()
    flow = solve(gaussians((0.6, xi), l2=np.array([0.0, 0.1, 0.2])), initial=start)
    for m in range(3):
        alone = solve(gaussians((0.6, float(xi[m])), l2=0.1 * m), initial=start)
        np.testing.assert_allclose(flow.weights[m], alone.weights[m], rtol=0, atol=1e-12)
        np.testing.assert_allclose(flow.loss[m], alone.loss[m], rtol=0, atol=1e-12)
        np.testing.assert_allclose(flow.events["rest"][m], alone.events["rest"][m], rtol=1e-6)
    assert np.abs(flow.weights[0] - solve(initial=start).weights[0]).max() > 1e-3


def test_more_members_than_fit_a_chunk(monkeypatch):
    # Chunks of three: the program of the other tests here. The last of seven members has copies
    # beside it.
    monkeypatch.setattr(_integrate, "CHUNK_MEMBERS", 3)
    start = random_fields(7)
    before = _ensemble.TRACES["solve"] if usual() else 0
    flow = solve(initial=start)
    assert _ensemble.TRACES["solve"] == before
    assert flow.num_members == 7 == len(flow.outcome)
    for pick in ([0, 1, 2], [2, 3, 4], [4, 5, 6]):
        alone = solve(initial=start[pick])
        np.testing.assert_allclose(flow.weights[pick], alone.weights, rtol=0, atol=1e-12)


def test_another_number_is_no_other_program():
    usual(), solve(gaussians((0.6, np.array([0.9, 1.1, 1.3]))))
    before = _ensemble.TRACES["solve"]
    for changes in (
        {"task": gaussians((0.5, 1.2), l2=0.1)},
        {"task": gaussians((0.6, np.array([0.8, 1.0, 1.2])))},
        {"seed": 9},
        {"times": 2 * TIMES},
        {"times": np.array([[0.5], [1.0], [2.0]]) * TIMES},
        {"tolerance": 1e-5},
        {"stop_tol": 1e-2},
        {"network": neuron(init_scale=0.7)},
        {"initial": random_fields()},
        {"task": gaussians(proportions=(0.3, 0.7))},
        {"task": gaussians(labels=(0, 2))},
    ):
        solve(**changes)
    assert _ensemble.TRACES["solve"] == before
    solve(members=2)  # the power of it
    assert _ensemble.TRACES["solve"] == before + 1


def test_dense_and_fourier_covariances_give_one_flow(monkeypatch):
    # On a torus: rows, sites in C order, and both ways to multiply.
    task = lf.Discrimination(*[lf.stimuli.NLGP((8, 8), xi=xi, gain=3.0) for xi in (0.6, 1.2)])
    theory, start = (
        lf.theory.EffectiveFlow(),
        np.random.default_rng(0).normal(scale=0.3, size=(1, 1, 8, 8)),
    )
    fields, gradients = jnp.asarray(np.random.default_rng(1).normal(size=(5, 1, 64))), []
    for largest in (256, 16):
        monkeypatch.setattr(base, "MAX_DENSE_SITES", largest)
        flow = theory.flow(task, neuron())
        assert flow.covariance.values.shape == ((64, 64) if largest == 256 else (8, 8))
        gradients.append(
            jax.jit(jax.vmap(lambda w, flow=flow: flow({"weights": w})[1]["weights"]))(fields)
        )
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=0, atol=1e-12)
    assert np.abs(gradients[0]).max() > 0.1
    result = lf.solve(task, theory, network=neuron(), initial=start, times=TIMES[:3])
    assert result.weights.shape == (1, 3, 1, 8, 8) and result.peak.shape == (1, 3, 1, 2)
    np.testing.assert_array_equal(result.weights[0, 0], start[0])
    assert result.to_xarray().weights.dims == ("member", "time", "neuron", "x0", "x1")


# -- events ----------------------------------------------------------------------------------------


class Constant(base.Response):
    """f(w) = b, whatever the field: the flow is linear, and all of it has a closed form."""

    b: jax.Array

    def __call__(self, w):
        return self.b


class Toward(base.NeuronTheory):
    """A neuron whose gate follows the site 0 alone."""

    def covers_class(self, stimulus):
        return base.EXACT

    def response(self, stimulus):
        with jax.enable_x64(True):
            return Constant(jnp.asarray(stimulus.covariance() / 2))


del _registry.CLASSES["theory"]["toward"]  # or `best_for` would choose it in other tests


def closed_form(task, start):
    """w(t) = w* + exp(−Σ̄t)(w₀ − w*), and its speed, from dense matrices."""
    one = lf.lattice.matrix(task.stimuli[1].covariance())
    mean = (lf.lattice.matrix(task.stimuli[0].covariance()) + one) / 2
    end = np.linalg.solve(mean, one[0] / 2)
    rates, axes = np.linalg.eigh(mean)
    gap = axes.T @ (start - end)

    def at(t):
        left = np.exp(-rates * t) * gap
        w = end + axes @ left
        return w, np.linalg.norm(rates * left) / np.linalg.norm(w)

    return at


def ipr_of(w):
    return np.sum(w**4) / np.sum(w**2) ** 2


STARTS = np.stack([
    0.3 * np.random.default_rng(1).normal(size=N),  # spread out, then localized
    2.0 * np.eye(N)[4],  # localized elsewhere, spread out on the way, and localized again
    0.4 * np.eye(N)[0],  # localized all the time
])[:, None]  # fmt: skip


def test_onset_and_rest_are_those_of_the_closed_form():
    task = lf.Discrimination(*[lf.stimuli.Ising(N, coupling=j) for j in (0.3, 0.7)])
    level, rest = localized_from(N), 1e-3
    flow = solve(task, Toward(), initial=STARTS, stop_tol=rest, times=np.linspace(0, 30, 11))
    later = solve(task, Toward(), initial=STARTS, stop_tol=rest, times=np.linspace(10, 30, 11))
    fine = np.linspace(0, 30, 3001)
    for m in range(3):
        at = closed_form(task, STARTS[m, 0])
        ipr = np.array([ipr_of(at(t)[0]) for t in fine])
        speed = np.array([at(t)[1] for t in fine])
        np.testing.assert_allclose(flow.weights[m, -1, 0], at(30)[0], rtol=0, atol=1e-8)

        def crossing(values, function):
            outside = np.flatnonzero(~values)
            if not outside.size:
                return 0.0
            last = outside[-1]
            return scipy.optimize.brentq(function, fine[last], fine[last + 1], xtol=1e-12)

        onset = crossing(ipr > level, lambda t, at=at: ipr_of(at(t)[0]) - level)
        calm = crossing(speed <= rest, lambda t, at=at: np.log(at(t)[1] / rest))
        # Records that begin later show the way from the start, but not that the second was spread
        # out on it.
        for one in (flow, later) if m != 1 else (flow,):
            np.testing.assert_allclose(one.events["onset"][m], onset, rtol=1e-5, atol=1e-9)
            np.testing.assert_allclose(one.events["rest"][m], calm, rtol=1e-4)
    first, again, always = flow.events["onset"]
    assert always == 0 and 0 < first < again
    assert flow.stopped == "at rest"
    # The second started out localized: from then on *until the end* is not from the first time on.
    assert flow.ipr[1, 0, 0] == 1 and again > 1
    # A record in between says so: up to there it never became localized for good, nor came to rest.
    middle = solve(
        task, Toward(), initial=STARTS, stop_tol=rest, times=np.linspace(0, 0.9 * again, 11)
    )
    assert np.isnan(middle.events["onset"][1]) and np.isnan(middle.events["rest"]).all()
    assert middle.stopped == "finished"
    data = flow.to_xarray()
    np.testing.assert_array_equal(data.onset_time, flow.events["onset"])
    np.testing.assert_array_equal(data.rest_time, flow.events["rest"])
    assert data.onset_time.dims == ("member",)


def test_without_times_it_ends_when_all_rest():
    result = solve(times=None, stop_tol=1e-4, until=500.0)
    assert result.stopped == "at rest" and result.weights.shape[1] == len(result.times)
    assert np.isfinite(result.events["rest"]).all() and result.times[0] == 0
    slowest = result.events["rest"].max()
    assert (
        result.times[-2] < slowest <= result.times[-1]
    )  # nothing is recorded after all have come to rest
    assert (np.diff(result.times) > 0).all() and len(result.times) > 25
    flow = LINEAR.flow(gaussians(), neuron())
    for m, when in enumerate(result.events["rest"]):
        after = result.times >= when
        speeds = np.array([_speed(flow, w) for w in result.weights[m]])
        assert (speeds[after] <= 1e-4 * (1 + 1e-3)).all() and (
            speeds[~after] > 1e-4 * (1 - 1e-3)
        ).all()
    # A wave, never localized at the end.
    assert np.isnan(result.events["onset"]).all()
    short = solve(times=None, stop_tol=1e-4, until=3.0)
    assert (
        short.stopped == "finished"
        and short.times[-1] == 3
        and np.isnan(short.events["rest"]).all()
    )
    # Who starts at rest has rested from the start.
    still = solve(times=None, stop_tol=1e-3, until=500.0, initial=result.final)
    np.testing.assert_array_equal(still.events["rest"], 0)


def _speed(flow, weights):
    gradient = np.asarray(flow({"weights": jnp.asarray(weights)})[1]["weights"])
    return np.linalg.norm(gradient) / np.linalg.norm(weights)


def test_localized_from_the_start():
    flow = solve(network=neuron(init="basis"), times=TIMES / 1000)
    assert (flow.ipr > 0.9).all()
    np.testing.assert_array_equal(flow.events["onset"], 0)


class Cube(base.Response):
    """A response that runs away."""

    def __call__(self, w):
        return w**3


class Runaway(base.NeuronTheory):
    """It reaches infinity in finite time if it starts out large."""

    def covers_class(self, stimulus):
        return base.EXACT

    def response(self, stimulus):
        return Cube()


del _registry.CLASSES["theory"]["runaway"]


def test_a_member_that_runs_away_spoils_no_other():
    start = np.array([0.01, 10.0, 0.02])[:, None, None] * np.ones((3, 1, N))
    flow = solve(theory=Runaway(), initial=start)
    assert [outcome.kind for outcome in flow.outcome] == ["ok", "non-finite", "ok"]
    assert flow.outcome[1].step == 1  # the first record it did not reach
    assert np.isfinite(flow.weights[[0, 2]]).all() and np.abs(flow.weights[[0, 2], -1]).max() < 0.01
    np.testing.assert_array_equal(flow.weights[1, 0], start[1])
    assert np.isnan(flow.events["rest"][1]) and np.isnan(flow.events["onset"][1])


# -- refusals --------------------------------------------------------------------------------------

three = np.array([0.9, 1.1, 1.3])
REFUSED = {
    "no task": ({"task": 3}, "`task`"),
    "a class": ({"theory": lf.theory.LinearResponse}, "`theory`"),
    "no theory": ({"theory": "linear"}, "`theory`"),
    "no network": ({"network": 1}, "`network`"),
    "network": ({"network": lf.networks.Committee(2)}, "LinearResponse describes SingleNeuron"),
    "activation": (
        {"network": lf.networks.SingleNeuron("tanh")},
        "LinearResponse describes SingleNeuron",
    ),
    "loss": ({"task": gaussians(loss="absolute")}, "LinearResponse needs mean squared error"),
    "labels": ({"task": gaussians(labels="one-hot")}, "one output, and this task needs 2"),
    "stimulus": ({"theory": lf.theory.ExactIsing()}, "ExactIsing covers Ising rings only"),
    "l1": ({"task": gaussians(l1=0.1)}, "`l1`"),
    "until": ({"times": None, "until": 0}, "`until`"),
    "untils": ({"times": None, "until": [1.0, 2.0]}, "`until`"),
    "stop_tol": ({"stop_tol": -1e-3}, "`stop_tol`"),
    "tolerance": ({"tolerance": 1.0}, "`tolerance`"),
    "solver": ({"solver": "implicit"}, "Unknown solver 'implicit'"),
    "seed": ({"seed": -1}, "`seed`"),
    "members": ({"members": 0}, "`members`"),
    "decreasing times": ({"times": [0, 2, 1]}, "`times`"),
    "repeated times": ({"times": [0, 1, 1]}, "`times`"),
    "negative times": ({"times": [-1, 0, 1]}, "`times`"),
    "one time": ({"times": 3.0}, "`times`"),
    "no times": ({"times": []}, "`times`"),
    "times of others": ({"times": np.ones((2, 1)) * TIMES}, "`times`"),
    "words": ({"times": "often"}, "`times`"),
    "initial": ({"initial": np.ones((1, 7))}, "`initial`"),
    "flat": ({"initial": np.ones(N)}, "`initial`"),
    "number": ({"initial": 1.0}, "`initial`"),
    "nan": ({"initial": np.full((1, N), np.nan)}, "`initial`"),
    "counts": ({"initial": random_fields(), "members": 2}, "The number of members"),
    "sweep": ({"task": gaussians((0.6, three)), "members": 2}, "The number of members"),
    "task and network": (
        {"task": gaussians((0.6, three)), "network": neuron(init_scale=three[:2]), "members": None},
        "The number of members",
    ),
}


def test_swept_numbers_have_one_length():
    with pytest.raises(InputError, match="Swept numbers must have one length: xi has 3, l2 has 2"):
        gaussians((0.6, [0.7, 0.8, 0.9]), l2=[0.1, 0.2])


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_was_got_and_what_to_do(name):
    changes, start = REFUSED[name]
    with pytest.raises(InputError) as error:
        # Bare, as for a user: the annotations are checked in tests alone.
        inspect.unwrap(lf.solve)(
            **{"task": gaussians(), "theory": LINEAR, "network": neuron(), "times": TIMES} | changes
        )
    text = str(error.value)
    assert start in text
    assert text.rstrip().endswith((".", "?")) and "\n" not in text and len(text) < 400
