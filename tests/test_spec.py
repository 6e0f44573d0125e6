"""One definition drives everything: what follows from a class's declared fields."""

import functools
import inspect
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields import _registry, _spec
from localfields._spec import Count, Number, Row, Shape, fields, name_of, registered
from localfields.fields import Real, Whole
from localfields.stimuli import base

FAMILIES = {"stimulus": lf.stimuli, "marginal": lf.marginals, "kernel": lf.lattice}
CLASSES = [cls for family in FAMILIES for cls in registered(family).values()]

ALL = [cls for family in _registry.HOMES for cls in registered(family).values()]

each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.family}-{name_of(cls)}")

# Not at their defaults, and of every kind of field.
VALUES = [
    lf.stimuli.NLGP((6, 5), xi=2, gain=7, kernel="periodized"),
    lf.stimuli.NLGP(4, kernel=[1, 0.5, 0.25, 0.5]),
    lf.stimuli.NLGP(24, xi=np.array([0.5, 1.0]), gain=[1, 2]),
    lf.stimuli.Copula(24, xi=1.5, marginal_law=lf.marginals.StudentT(nu=7)),
    lf.stimuli.Copula(24, marginal_law="algebraic:k=5"),
    lf.stimuli.Copula(24, xi=1.5, marginal_law=lf.marginals.Empirical([3, 1, 2.5])),
    lf.stimuli.Gaussian(24, scale=2, offset=-1),
    lf.stimuli.Ising(9, coupling=-0.4),
    lf.stimuli.BlockPulse((4, 6), length=2, coding="zero-one"),
    lf.stimuli.DenseGaussian(2, [[2, 1], [1, 2]], offset=0.5),
    lf.marginals.Empirical([3, 1, 2], weights=[0.5, 0.25, 0.25]),
    lf.marginals.SphereProjection(7, [1, 2], [0.5, 0.5]),
    lf.lattice.Given([1, 0.25]),
]
each_value = pytest.mark.parametrize("value", VALUES, ids=repr)


@pytest.fixture
def registry(monkeypatch):
    """The classes a test defines are forgotten after it."""
    monkeypatch.setattr(
        _registry, "CLASSES", {family: dict(known) for family, known in _registry.CLASSES.items()}
    )


# -- the signature ---------------------------------------------------------------------------------


@each_class
def test_signature_is_the_declaration(cls):
    parameters = list(inspect.signature(cls).parameters.values())
    assert [parameter.name for parameter in parameters] == [field.name for field in fields(cls)]
    assert all(parameter.default is not parameter.empty for parameter in parameters)
    assert all(field.help and "\n" not in field.help for field in fields(cls))


@each_class
def test_position_and_name_are_one(cls):
    given = {field.name: field.default for field in fields(cls)}
    assert repr(cls(*given.values())) == repr(cls(**given)) == repr(cls())
    assert cls(*given.values()).to_json() == cls().to_json()


def test_values_by_position_take_the_declared_order():
    by_position = lf.stimuli.NLGP((6,), 2.0, 7.0, "periodized")
    assert by_position.to_json() == {
        "type": "stimulus/nlgp",
        "shape": [6],
        "xi": 2.0,
        "gain": 7.0,
        "kernel": "periodized",
    }
    assert list(inspect.signature(lf.stimuli.NLGP).parameters) == ["shape", "xi", "gain", "kernel"]


def test_a_subclass_declares_more_fields(registry):
    class Second(lf.marginals.Laplace):
        first: Real = _spec.number(default=1.0, help="a")
        scale: Real = _spec.number(default=2.0, help="b")
        third: Whole = _spec.declare(Count(), default=3, help="c")

    # As in any dataclass: inherited fields keep their place, though their defaults may change.
    assert list(inspect.signature(Second).parameters) == ["scale", "first", "third"]
    assert inspect.signature(Second).parameters["scale"].default == 2.0
    assert Second(5, 6, 7).to_json() == {
        "type": "marginal/second",
        "scale": 5.0,
        "first": 6.0,
        "third": 7,
    }
    assert lf.from_json({"type": "marginal/second"}).third == 3


def test_values_are_frozen():
    with pytest.raises(AttributeError):
        lf.stimuli.NLGP(24).gain = 3.0


# -- forms -----------------------------------------------------------------------------------------


FUNCTIONS = [  # given as functions, kept as tables
    lf.stimuli.Copula(24, xi=1.5, marginal_law=lambda u: -np.log1p(-u * (1 - 1e-15))),
    lf.stimuli.Elliptical(24, xi=1.5, radial=lambda u: 3 + u**2),
    lf.stimuli.Gaussian(24, xi=1.5, kernel=lambda d: np.exp(-d)),
    lf.marginals.Tabulated.of(lambda u: u**3),
]


@pytest.mark.parametrize("value", VALUES + FUNCTIONS, ids=repr)
def test_json_round_trip(value):
    text = json.dumps(value.to_json(), allow_nan=False)
    again = lf.from_json(json.loads(text))
    assert type(again) is type(value) and json.dumps(again.to_json()) == text
    assert jax.tree.structure(again) == jax.tree.structure(value)
    for mine, other in zip(jax.tree.leaves(again), jax.tree.leaves(value), strict=True):
        np.testing.assert_array_equal(mine, other)


@each_class
def test_json_round_trip_of_defaults(cls):
    plain = json.loads(json.dumps(cls().to_json(), allow_nan=False))
    assert lf.from_json(plain).to_json() == plain
    assert lf.from_json({"type": plain["type"]}).to_json() == plain


NAMESPACE = {
    **{cls.__name__: cls for family in _registry.HOMES for cls in registered(family).values()},
    "stimuli": lf.stimuli,
    "marginals": lf.marginals,
}
LONG = {"Tabulated"}  # a table of thousands of numbers is not for reading


@pytest.mark.parametrize(
    "value", VALUES + [cls() for cls in ALL if cls.__name__ not in LONG], ids=repr
)
def test_repr_is_the_call(value):
    again = eval(repr(value), dict(NAMESPACE))
    assert type(again) is type(value) and again.to_json() == value.to_json()
    assert eqx.tree_equal(again, value)


def test_repr_shows_every_number():
    assert repr(lf.stimuli.Ising(40)) == "Ising(shape=(40,), coupling=0.7)"
    assert repr(lf.stimuli.Kur(40)) == "Kur(shape=(40,), xi=3.0, k=10.0)"
    assert repr(lf.stimuli.Kur(40, kernel="periodized")).endswith("kernel=Periodized())")
    for cls in ALL:
        for field in fields(cls):
            if isinstance(field.kind, (Number, Count, Shape)):
                assert f"{field.name}=" in repr(cls())


def test_repr_names_the_room_where_two_classes_share_a_name():
    assert repr(lf.stimuli.StudentT(40)).startswith("stimuli.StudentT(")
    assert "marginal_law=marginals.StudentT(" in repr(VALUES[3])


def test_repr_of_a_long_table_is_its_shape():
    assert repr(lf.marginals.Tabulated()) == "Tabulated(table=<array of shape (4097,)>)"


@pytest.mark.parametrize(
    "three", [3, 3.0, np.int64(3), np.float32(3), np.array(3), jnp.asarray(3.0)], ids=repr
)
def test_three_is_three(three):
    value = lf.stimuli.NLGP(24, gain=three)
    assert type(value.gain) is float
    assert json.dumps(value.to_json()) == json.dumps(lf.stimuli.NLGP(24, gain=3.0).to_json())
    assert repr(value) == "NLGP(shape=(24,), xi=3.0, gain=3.0)"


@pytest.mark.parametrize(
    "six", [6, (6,), [6], np.int64(6), np.array([6]), (np.int32(6),)], ids=repr
)
def test_a_ring_of_six_is_one(six):
    value = lf.stimuli.Ising(six)
    assert value.shape == (6,) and type(value.shape[0]) is int
    assert hash(jax.tree.structure(value)) == hash(jax.tree.structure(lf.stimuli.Ising(6)))


@pytest.mark.parametrize("eight", [8, 8.0, np.int64(8)], ids=repr)
def test_counts_are_ints(eight):
    value = lf.stimuli.SinglePulse(20, longest=eight)
    assert type(value.longest) is int and json.dumps(value.to_json()["longest"]) == "8"


def test_replace_changes_only_what_is_named():
    value = lf.stimuli.NLGP((6, 5), xi=2, gain=7, kernel="periodized")
    assert value.replace(gain=8).to_json() == {**value.to_json(), "gain": 8.0}
    assert value.replace().to_json() == value.to_json()
    assert value.gain == 7.0
    law = lf.marginals.StudentT(nu=5)
    # Tables are made again: a copy with another ν is the law of that ν.
    np.testing.assert_array_equal(law.replace(nu=9).table, lf.marginals.StudentT(nu=9).table)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("NLGP", "nlgp"), ("StudentT", "student-t"), ("EllipticalShell", "elliptical-shell")],
)
def test_names(name, expected):
    assert name_of(getattr(lf.stimuli, name)) == expected
    assert registered("stimulus")[expected] is getattr(lf.stimuli, name)


def test_abstract_classes_are_not_offered():
    offered = {cls.__name__ for cls in CLASSES}
    assert len(offered) > 20
    assert not offered & {
        "Stimulus",
        "GaussianCopula",
        "EllipticalStimulus",
        "Pulse",
        "Marginal",
        "SymmetricMarginal",
        "Kernel",
    }


# -- numbers are leaves, the rest is static --------------------------------------------------------


@each_class
def test_numbers_are_leaves_and_shapes_are_static(cls):
    value = cls()
    leaves = {path[-1].name for path, _ in jax.tree_util.tree_leaves_with_path(value)}
    for field in fields(cls):
        if isinstance(field.kind, (Number, Row)):
            assert field.name in leaves
        elif field.kind.static:
            assert field.name not in leaves


@pytest.mark.parametrize(
    "sweep", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3]), jnp.array([1.0, 2.0, 3.0])], ids=repr
)
def test_arrays_sweep(sweep):
    value = lf.stimuli.NLGP(24, gain=sweep)
    assert isinstance(value.gain, np.ndarray) and value.gain.dtype == np.float64
    assert value.gain.tolist() == [1.0, 2.0, 3.0] == value.to_json()["gain"]
    assert lf.from_json(value.to_json()).gain.tolist() == [1.0, 2.0, 3.0]


def test_a_swept_value_maps_over_its_members(key):
    swept = lf.stimuli.Ising(6, coupling=[0.1, 0.5, 1.0])
    axes = jax.tree.map(lambda leaf: 0 if np.ndim(leaf) else None, swept)
    together = jax.vmap(lambda one: one.draw(key, 50), in_axes=(axes,))(swept)
    alone = [lf.stimuli.Ising(6, coupling=coupling).sample(key, 50) for coupling in (0.1, 0.5, 1.0)]
    np.testing.assert_array_equal(together, np.stack(alone))


# -- compiled code ---------------------------------------------------------------------------------


class Counter:
    """Counts how often Python runs a function: once a trace."""

    def __init__(self, function):
        self.count = 0
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)


def test_traced_numbers_are_accepted_and_do_not_retrace(key):
    build = Counter(
        lambda xi, gain: lf.stimuli.NLGP(24, xi=xi, gain=gain, kernel="periodized").draw(key, 20)
    )
    compiled = jax.jit(build)
    for xi, gain in ((1.0, 2.0), (3.0, 100.0), (0.5, 0.01)):
        wanted = lf.stimuli.NLGP(24, xi=xi, gain=gain, kernel="periodized").sample(key, 20)
        np.testing.assert_allclose(compiled(xi, gain), wanted, rtol=1e-9, atol=1e-9)
    assert build.count == 1


def test_gradients_pass_through_a_specification(key):
    def mean_square(scale):
        return jnp.mean(lf.stimuli.Gaussian(24, scale=scale).draw(key, 20) ** 2)

    # E X² is scale² times a constant of the key.
    assert jax.grad(mean_square)(3.0) == pytest.approx(2 / 3 * float(mean_square(3.0)), rel=1e-9)


NUMBERED = [
    cls
    for cls in registered("stimulus").values()
    if any(isinstance(field.kind, Number) for field in fields(cls))
]


def other_numbers(cls, factor):
    """The class's defaults, every number moved by a factor."""
    names = [field.name for field in fields(cls) if isinstance(field.kind, Number)]
    return cls(**{name: factor * (getattr(cls(), name) + 0.01) for name in names})


@pytest.mark.parametrize("cls", NUMBERED, ids=name_of)
def test_another_number_is_the_same_program(cls):
    # What the compiler's cache goes by: the structure with its static fields, and the leaves'
    # shapes and types.
    one, other = other_numbers(cls, 1.0), other_numbers(cls, 1.3)
    assert repr(one) != repr(other)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert [jax.typeof(leaf) for leaf in jax.tree.leaves(one)] == [
        jax.typeof(leaf) for leaf in jax.tree.leaves(other)
    ]


@pytest.mark.parametrize("cls", [lf.stimuli.NLGP, lf.stimuli.Kur, lf.stimuli.Ising], ids=name_of)
def test_another_number_does_not_recompile(cls, monkeypatch, key):
    counted = Counter(cls.draw)
    monkeypatch.setattr(cls, "draw", lambda self, key, num: counted(self, key, num))
    base._compiled_draw.clear_cache()
    drawn = [np.asarray(other_numbers(cls, factor).sample(key, 64)) for factor in (1.0, 1.2, 1.4)]
    assert counted.count == 1
    # It is the numbers that changed, not the cache that was too generous.
    assert not np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[1], drawn[2])
    cls().sample(key, 65)
    assert counted.count == 2  # a count is static: the probe sees a trace when there is one


def test_specifications_are_equinox_modules_that_filter():
    value = lf.stimuli.NLGP(24, gain=2)
    arrays, rest = eqx.partition(value, eqx.is_inexact_array_like)
    assert sorted(jax.tree.leaves(arrays)) == [2.0, 3.0]
    assert eqx.combine(arrays, rest).to_json() == value.to_json()
