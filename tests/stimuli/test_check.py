"""A stimulus of one's own whose parts do not fit together is told so before it is used, and one
whose samples do not follow what it declares when it is checked.
"""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import localfields as lf
from localfields import _registry
from localfields._types import working_dtype
from localfields.fields import LATTICE, Lattice, Real, declare, number
from localfields.marginals import Normal, TwoPoint
from localfields.stimuli import _check
from localfields.stimuli.base import Stimulus

SITES, NUM = 12, 20_000


@pytest.fixture
def coins(monkeypatch):
    """Makes a class of independent signs in which some methods are replaced."""
    classes = {family: dict(known) for family, known in _registry.CLASSES.items()}
    monkeypatch.setattr(_registry, "CLASSES", classes)
    monkeypatch.setattr(_check, "_FIT", set())

    class Coins(Stimulus):
        shape: Lattice = declare(LATTICE, default=(SITES,))
        spread: Real = number(default=1.0, low=0, help="size of a sign")

        def draw(self, key, num):
            return self.spread * jax.random.rademacher(key, (num, self.size), working_dtype())

        def covariance(self):
            row = np.zeros(self.shape)
            row.flat[0] = self.spread**2
            return row

        def marginal(self):
            return TwoPoint(self.spread)

    def make(**methods):
        for name, method in methods.items():
            monkeypatch.setattr(Coins, name, method)
        return Coins

    return make


def row(*values):
    return lambda self: np.array(values + (0.0,) * (SITES - len(values)))


def branch(self, key, num):
    return jnp.zeros((num, 1)) if self.spread > 2 else jax.random.normal(key, (num, SITES))


BROKEN = {
    "draw unfilled": ({"draw": lambda self, key, num: ...}, r"draw must .* got Ellipsis"),
    "draw nothing": ({"draw": lambda self, key, num: None}, r"draw must .* got None"),
    "draw transposed": (
        {"draw": lambda self, key, num: jnp.zeros((SITES, num))},
        r"shape \(num, 12\), here \(16, 12\), got float64 \(12, 16\)",
    ),
    "draw whole numbers": (
        {"draw": lambda self, key, num: jax.random.randint(key, (num, SITES), 0, 2)},
        r"numbers of type float.*got int64",
    ),
    "draw nan": (
        {"draw": lambda self, key, num: jnp.full((num, SITES), jnp.nan)},
        "draw returned samples that are nan",
    ),
    "draw by a number's value": ({"draw": branch}, r"at line \d+ of test_check.py.*`jnp.where`"),
    "draw fails": (
        {"draw": lambda self, key, num: self.sprad},
        r"Coins.draw failed at line \d+ of test_check.py .AttributeError: .*sprad",
    ),
    "covariance unfilled": ({"covariance": lambda self: ...}, "covariance must .* got Ellipsis"),
    "covariance too short": (
        {"covariance": lambda self: np.ones(5)},
        r"covariance must return .*shape \(12,\).* or \(12, 12\), got shape \(5,\)",
    ),
    "covariance nan": ({"covariance": row(1.0, np.nan)}, "covariance has values that are nan"),
    "covariance of one side": ({"covariance": row(1.0, 0.2)}, "covariance is not symmetric"),
    "covariance of the wrong sign": ({"covariance": row(-1.0)}, "smallest eigenvalue is -1"),
    "covariance too strong": (
        {"covariance": lambda self: row(1.0, 0.8)(self) + np.roll(row(0.8)(self), -1)},
        "smallest eigenvalue is -0.6, and none may be negative",
    ),
    "covariance a row of unequal sites": (
        {"translation_invariant": property(lambda self: False)},
        "must return the whole matrix.*translation_invariant is False",
    ),
    "covariance an asymmetric matrix": (
        {"covariance": lambda self: np.eye(SITES) + np.eye(SITES, k=1)},
        "covariance is not symmetric",
    ),
    "marginal unfilled": ({"marginal": lambda self: ...}, "marginal must .* got Ellipsis"),
    "marginal of another variance": (
        {"marginal": lambda self: TwoPoint(2.0)},
        "marginal has variance 4, and Coins.covariance says 1",
    ),
    "mean of every site": ({"mean": lambda self: np.zeros(SITES)}, "mean must return one finite"),
    "mean infinite": ({"mean": lambda self: np.inf}, "mean must return one finite number"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_parts_that_do_not_fit_are_told_before_use(name, coins):
    methods, says = BROKEN[name]
    cls = coins(**methods)
    uses = (
        lambda: cls().sample(0, 3),
        lambda: lf.Discrimination(cls(), cls(spread=2)),
        lambda: lf.Discrimination(cls(spread=[1, 2]), lf.stimuli.Gaussian(SITES, xi=0.5)),
        lambda: lf.stimuli.check(cls(), NUM),
    )
    for use in uses:
        with pytest.raises(lf.InputError, match=says) as told:
            use()
        assert str(told.value).startswith("Coins.") and "\n" not in str(told.value)


def test_a_class_is_checked_once(coins, monkeypatch):
    calls, covariance = [], coins().covariance
    cls = coins(covariance=lambda self: calls.append(self.shape) or covariance(self))
    for shape in (12, 12, (3, 4)):
        cls(shape).sample(0, 3)
        lf.Discrimination(cls(shape), cls(shape, spread=2))
    assert calls == [(12,), (3, 4)]


def test_a_right_stimulus_agrees(coins):
    for stimulus in (coins()(), coins()((3, 4), spread=2.0)):
        report = lf.stimuli.check(stimulus, NUM)
        assert report.ok and report.problems == () and report.num == NUM
        assert set(report.passed) == {
            "mean", "covariance", "marginal", "fourth moment", "independence", "shifts", "signs"
        }  # fmt: skip
        assert str(report).splitlines() == [
            f"{stimulus!r}, 20,000 samples",
            f"  agrees: {', '.join(report.passed)}",
        ]


def times(factor):
    return lambda self, key, num: factor * jax.random.rademacher(key, (num, SITES), working_dtype())


def uneven(self, key, num):
    return jax.random.rademacher(key, (num, SITES), working_dtype()) * jnp.where(
        jnp.arange(SITES)[None] == 3, 1.1, 1.0
    )


def leaning(self, key, num):
    u = jax.random.uniform(key, (num, SITES), working_dtype())
    return jnp.where(u < 0.2, 2.0, -0.5)  # mean 0, variance 1


def repeated(self, key, num):
    return jnp.repeat(jax.random.rademacher(key, (num // 2, SITES), working_dtype()), 2, axis=0)


DISAGREES = {
    "variance": (
        {"draw": times(1.1)},
        r"covariance \(variance\) of site \d+: the samples have 1.21, `covariance` says 1 ",
    ),
    "mean": (
        {"draw": lambda self, key, num: 0.1 + times(1.0)(self, key, num)},
        r"mean: site \d+ of the samples has 0.1\d*, `mean` says 0 ",
    ),
    "covariance": (
        {"covariance": lambda self: row(1.0, 0.1)(self) + np.roll(row(0.1)(self), -1)},
        r"covariance of sites \d+ and \d+: the samples have -?0.0\d*, `covariance` says 0.1 ",
    ),
    "marginal": (
        {"marginal": lambda self: Normal()},
        "the kurtosis of the samples is 1, that of `marginal` 3 ",
    ),
    "shifts": ({"draw": uneven}, "`translation_invariant` is True, but sites are not alike"),
    "signs": ({"draw": leaning}, "`sign_symmetric` is True, but X and −X"),
    "independence": ({"draw": repeated}, "each sample depends on the one before"),
}


@pytest.mark.parametrize("name", DISAGREES)
def test_samples_that_do_not_follow_are_told(name, coins):
    methods, says = DISAGREES[name]
    report = lf.stimuli.check(coins(**methods)(), NUM)
    assert not report.ok
    told = [problem for problem in report.problems if re.search(says, problem)]
    assert told, report
    assert "DISAGREES: " in str(report) and told[0].endswith("standard errors).")


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: inspect.unwrap(lf.stimuli.check)("nlgp"), "needs a stimulus, got 'nlgp'"),
        (lambda: lf.stimuli.check(lf.stimuli.Ising(12), num=10), "`num` must be"),
        (lambda: lf.stimuli.check(lf.stimuli.Ising(12), seed=-1), "`seed` must be"),
        (
            lambda: lf.stimuli.check(lf.stimuli.Ising(12, coupling=[0.1, 0.2])),
            "one number to check",
        ),
        (lambda: lf.stimuli.check(lf.stimuli.Samples()), "nothing to check"),
    ],
)
def test_what_cannot_be_checked_is_refused(use, says):
    with pytest.raises(lf.InputError, match=says):
        use()
