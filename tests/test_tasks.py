"""Tasks: labels, proportions, losses, penalties, and the plain-value form."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields.tasks import LOSSES, Proportions


def stimuli(count=2, shape=(6,)):
    return [lf.stimuli.Gaussian(shape, xi=0.2 + 0.2 * c) for c in range(count)]


def task(count=2, **values):
    return lf.Discrimination(*stimuli(count), **values)


# -- labels and proportions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "two", "three"),
    [
        ("zero-one", [[0], [1]], [[0], [1], [2]]),
        ("signs", [[-1], [1]], [[-1], [0], [1]]),
        ("one-hot", [[1, 0], [0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ],
)
def test_targets_by_name(labels, two, three):
    assert task(2, labels=labels).targets().tolist() == two
    assert task(3, labels=labels).targets().tolist() == three
    assert task(3, labels=labels).outputs == len(three[0])


@pytest.mark.parametrize(
    "classes",
    [
        lambda: stimuli(1) * 2,
        lambda: [*stimuli(2), stimuli(1)[0]],
        lambda: [lf.stimuli.Copula((6,), xi=0.5, marginal_law="algebraic:k=5") for _ in range(2)],
        lambda: [lf.stimuli.Samples(np.eye(6)), lf.stimuli.Samples(np.eye(6).tolist())],
    ],
)
def test_equal_classes_are_refused(classes):
    with pytest.raises(lf.InputError, match=r"Classes 0 and [12] are identical: .*(own|differ)"):
        lf.Discrimination(*classes())


def test_the_member_with_equal_classes_is_named():
    long = lf.stimuli.Gaussian((6,), xi=0.6)
    with pytest.raises(lf.InputError, match="identical for member 1: "):
        lf.Discrimination(lf.stimuli.Gaussian((6,), xi=[0.2, 0.6]), long)
    apart = lf.Discrimination(lf.stimuli.Gaussian((6,), xi=[0.2, 0.6]), long.replace(xi=[0.6, 0.2]))
    assert apart.outputs == 1


def test_data_are_equal_under_any_name(tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 6))
    files = [tmp_path / "first.npy", tmp_path / "copy.npy"]
    for file in files:
        np.save(file, rows)
    for second in (*files, rows):
        with pytest.raises(lf.InputError, match="Classes 0 and 1 are identical"):
            lf.data.sources(files[0], second)
    np.save(files[1], rows[::-1])
    assert lf.data.sources(*files).shape == (6,)


def test_equal_labels_are_refused_where_all_are():
    with pytest.raises(lf.InputError, match="All classes have the label 1"):
        task(2, labels=(1, 1))
    assert task(3, labels=(0, 1, 1)).targets().tolist() == [[0], [1], [1]]


def test_a_mixture_without_labels_is_for_baselines_alone():
    mixture = lf.Discrimination(*stimuli(1) * 2, labels="none")
    assert mixture.priors == (0.5, 0.5)
    for use in (lf.predict, lambda task: lf.train(task, lf.networks.SingleNeuron(), steps=1)):
        with pytest.raises(lf.InputError, match="no labels"):
            use(mixture)
    fitted = lf.Experiment(mixture, method=lf.Fit(lf.baselines.PCA(2), samples=50)).run()
    assert fitted.weights.shape == (1, 1, 2, 6)


def test_first_stimulus_is_class_zero():
    assert task().labels == "zero-one" and task().targets().tolist() == [[0], [1]]


def test_targets_by_number():
    assert task(3, labels=(0.5, -1, 2)).targets().tolist() == [[0.5], [-1], [2]]
    assert task(2, labels=np.array([1, 0])).targets().tolist() == [[1], [0]]
    assert task(2, labels=[1, 0]).outputs == 1


def test_proportions_are_normalized():
    assert task(3).priors == (1 / 3,) * 3
    assert task(3, proportions=(1, 1, 2)).priors == (0.25, 0.25, 0.5)
    assert task(2, proportions=(0.3, 0.7)).priors == (0.3, 0.7)


def test_typed_proportions():
    assert Proportions().parse("proportions", "") == () and Proportions().parse(
        "proportions", "1,3"
    ) == (0.25, 0.75)
    with pytest.raises(
        lf.InputError, match="`proportions` must be a sequence of numbers, got 'half,half'"
    ):
        Proportions().parse("proportions", "half,half")


def test_proportions_survive_a_copy(key):
    for drawn in np.asarray(jax.random.uniform(key, (100, 3), minval=0.01)):
        once = task(3, proportions=tuple(drawn))
        assert once.replace(l1=0.5).proportions == once.proportions
        assert math.fsum(once.priors) == pytest.approx(1, abs=1e-15)


def test_shape_and_size_are_the_lattice_s():
    both = lf.Discrimination(*stimuli(shape=(4, 6)))
    assert both.shape == (4, 6) and both.size == 24


# -- losses ----------------------------------------------------------------------------------------


def loss(task, output, target):
    return float(task.sample_loss(jnp.asarray(output, float), jnp.asarray(target, float)))


def test_losses_by_hand():
    assert loss(task(), [3.0], [1.0]) == 4.0  # the square itself: no ½
    assert loss(task(2, labels="one-hot"), [3.0, -1.0], [1.0, 0.0]) == 4.0 + 1.0
    assert loss(task(2, loss="absolute"), [3.0], [1.0]) == 2.0
    assert loss(task(2, loss="absolute", labels="one-hot"), [3.0, -1.0], [1.0, 0.0]) == 3.0
    two = task(2, loss="cross-entropy")
    assert loss(two, [2.0], [1.0]) == pytest.approx(math.log1p(math.exp(-2)), rel=1e-14)
    assert loss(two, [2.0], [0.0]) == pytest.approx(2 + math.log1p(math.exp(-2)), rel=1e-14)
    hot = task(3, loss="cross-entropy", labels="one-hot")
    weights = np.exp([1.0, 2.0, 3.0])
    assert loss(hot, [1.0, 2.0, 3.0], [0, 1, 0]) == pytest.approx(
        -math.log(weights[1] / weights.sum()), rel=1e-14
    )


@pytest.mark.parametrize("output", (-800.0, 800.0))
def test_cross_entropy_of_a_sure_answer_is_finite(output):
    hot = task(2, loss="cross-entropy", labels="one-hot")
    for value in (
        loss(task(2, loss="cross-entropy"), [output], [1.0]),
        loss(hot, [-output, 0.0], [0, 1]),
    ):
        assert value == pytest.approx(800 * (output < 0), abs=1e-12)


def test_cross_entropy_of_two_outputs_is_that_of_their_difference():
    hot, one = task(2, loss="cross-entropy", labels="one-hot"), task(2, loss="cross-entropy")
    assert loss(hot, [0.3, 1.7], [0, 1]) == pytest.approx(loss(one, [1.4], [1]), rel=1e-14)


def test_choice_is_the_nearest_target():
    def chosen(task, *outputs):
        return [int(task.choose(jnp.asarray(output, float))) for output in outputs]

    assert chosen(task(), [-3.0], [0.49], [0.51], [7.0]) == [0, 0, 1, 1]
    assert chosen(task(2, labels=(1, 0)), [-3.0], [0.49], [0.51], [7.0]) == [1, 1, 0, 0]
    assert chosen(task(2, labels="signs"), [-0.1], [0.1]) == [0, 1]
    assert chosen(task(3), [0.4], [0.6], [1.4], [1.6]) == [0, 1, 1, 2]
    assert chosen(task(2, loss="cross-entropy"), [-0.1], [0.1], [0.6]) == [0, 1, 1]
    assert chosen(task(2, loss="cross-entropy", labels=(1, 0)), [-0.1], [0.1]) == [1, 0]
    assert chosen(task(3, labels="one-hot"), [1.0, 3.0, 2.0], [5.0, 3.0, 2.0]) == [1, 0]


def test_penalties_and_their_gradient():
    weights = jnp.array([[1.0, -2.0], [0.5, 3.0]])
    both = task(2, l1=0.1, l2=0.01)
    assert float(both.penalty(weights)) == pytest.approx(0.1 * 6.5 + 0.01 * 14.25, rel=1e-14)
    expected = 0.1 * np.sign(weights) + 2 * 0.01 * np.asarray(weights)
    np.testing.assert_allclose(jax.grad(both.penalty)(weights), expected, rtol=1e-14)
    assert float(task().penalty(weights)) == 0


# -- what does not fit is refused ------------------------------------------------------------------


def test_lattices_must_agree():
    with pytest.raises(
        lf.InputError,
        match=r"different shapes: \(6,\), \(8,\). Give every class",
    ):
        lf.Discrimination(*stimuli(1, shape=(6,)), *stimuli(1, shape=(8,)))
    with pytest.raises(lf.InputError, match=r"shapes: \(6,\), \(6,\), \(3, 2\)"):
        lf.Discrimination(*stimuli(), lf.stimuli.Gaussian((3, 2), xi=0.2))


@pytest.mark.parametrize(
    ("count", "labels"),
    [(2, "signs"), (2, (0, 2)), (2, (0, 0)), (3, "zero-one"), (3, (0, 1, 1)), (3, (0, 0.5, 1))],
)
def test_cross_entropy_needs_probabilities(count, labels):
    with pytest.raises(
        lf.InputError,
        match="The cross-entropy needs labels 0 and 1 .*got",
    ):
        task(count, labels=labels, loss="cross-entropy")


@pytest.mark.parametrize(
    ("count", "labels"), [(2, "zero-one"), (2, (1, 0)), (2, "one-hot"), (3, "one-hot")]
)
def test_cross_entropy_takes_probabilities(count, labels):
    assert task(count, labels=labels, loss="cross-entropy").loss in LOSSES


# -- the plain-value form --------------------------------------------------------------------------

EXAMPLES = {
    "plain": lambda: lf.Discrimination(*stimuli()),
    "default": lambda: lf.Discrimination(),
    "one-hot": lambda: task(3, labels="one-hot", loss="cross-entropy", proportions=(1, 2, 4)),
    "numbers": lambda: task(3, labels=(0.1, -1, 2), loss="absolute", l1=0.1, l2=0.2),
    "swept": lambda: lf.Discrimination(
        lf.stimuli.NLGP((6,), xi=0.3, gain=[1, 2]),
        lf.stimuli.NLGP((6,), xi=0.6, gain=[1, 2]),
        l2=[0.1, 0.2],
    ),
    "mixed": lambda: lf.Discrimination(
        lf.stimuli.Copula(
            (4, 6), xi=0.5, marginal_law=lf.marginals.StudentT(5), kernel="periodized"
        ),
        lf.stimuli.SinglePulse((4, 6), shortest=2, longest=3),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_json_round_trip(name):
    once = EXAMPLES[name]()
    plain = json.loads(json.dumps(once.to_json(), allow_nan=False))
    again = lf.from_json(plain)
    assert type(again) is lf.Discrimination and repr(again) == repr(once)
    assert again.to_json() == once.to_json() == plain
    assert [type(one) for one in again.stimuli] == [type(one) for one in once.stimuli]
    np.testing.assert_array_equal(again.targets(), once.targets())
    assert again.priors == once.priors


def test_json_says_every_field():
    assert task(2, l1=0.5).to_json() == {
        "type": "task/discrimination",
        "stimuli": [one.to_json() for one in stimuli()],
        "labels": "zero-one",
        "proportions": [],
        "loss": "mse",
        "l1": 0.5,
        "l2": 0.0,
    }
