"""A mistake gets a message of one or two sentences, before anything is compiled."""

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import localfields as lf
from localfields._spec import Number, fields, registered

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import messages  # noqa: E402

FAMILIES = {"stimulus": lf.stimuli, "marginal": lf.marginals, "kernel": lf.lattice}


EXPECTED = messages.read()


@pytest.fixture(scope="session")
def outcomes():
    """What each mistake led to, all made in one fresh process."""
    command = [sys.executable, messages.__file__, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", EXPECTED)
def test_mistake_gets_its_message(name, outcomes):
    outcome = outcomes[name]
    assert outcome["type"] == "InputError", f"{outcome['type']}: {outcome['message']}"
    assert not outcome["compiled"], "refused after something was compiled"
    assert outcome["message"] == EXPECTED[name], "run scripts/messages.py --update and read it"


def test_every_mistake_has_a_message(outcomes):
    assert len(outcomes) >= 150 and outcomes.keys() == EXPECTED.keys()
    assert issubclass(lf.InputError, ValueError)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_message_is_short_and_ends_like_a_sentence(name):
    message = EXPECTED[name]
    assert 20 < len(message) < 320 and message.endswith((".", "?", "zarr")), message
    assert message[0].isupper() or message[0] in "`-0123456789", message


def number_fields():
    return [
        pytest.param(cls, field.name, field.kind, id=f"{family}/{name}-{field.name}")
        for family in FAMILIES
        for name, cls in registered(family).items()
        for field in fields(cls)
        if isinstance(field.kind, Number)
    ]


def edges(kind):
    """Pairs (just outside, just inside) at each finite end of the declared range."""
    for end, away in ((kind.low, -math.inf), (kind.high, math.inf)):
        if math.isfinite(end):
            beyond, before = float(np.nextafter(end, away)), float(np.nextafter(end, -away))
            yield (beyond, end) if kind.closed else (end, before)


@pytest.mark.parametrize(("cls", "field", "kind"), number_fields())
def test_declared_range_is_the_accepted_one(cls, field, kind):
    pairs = list(edges(kind))
    refused = [math.nan, math.inf, -math.inf, *(outside for outside, _ in pairs)]
    for value in refused:
        with pytest.raises(lf.InputError, match=f"`{field}` must be .*got"):
            cls(**{field: value})
    for value in [inside for _, inside in pairs] or [0.0, -1e300, 1e300]:
        assert getattr(cls(**{field: value}), field) == value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_declared_ranges(family):
    # The test above must have something to look at; kernels have no numbers of their own.
    found = [
        kind
        for cls in registered(family).values()
        for field in fields(cls)
        for kind in [field.kind]
    ]
    ranged = [kind for kind in found if isinstance(kind, Number) and list(edges(kind))]
    assert len(ranged) >= {"stimulus": 10, "marginal": 13, "kernel": 0}[family]


def test_extreme_lengthscales_give_a_correlation():
    for xi in (5e-324, 1e-300, 1e-3, 1e3, 1e300):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The kernel is not positive", UserWarning)
            row = lf.stimuli.Gaussian(40, xi=xi).covariance()
        assert np.abs(row).max() == pytest.approx(1, abs=1e-12) == row[0]


def test_extreme_gains_are_the_limits(key):
    with jax.enable_x64(False):  # where squares of such gains are beyond the range of numbers
        normal = np.asarray(lf.stimuli.Gaussian(24).sample(key, 50))
        for gain in (5e-324, 1e-30, 1e-15):
            drawn = np.asarray(lf.stimuli.NLGP(24, gain=gain).sample(key, 50))
            np.testing.assert_allclose(drawn, normal, rtol=1e-5)
        for gain in (1e15, 1e30, 1e300):
            drawn = np.asarray(lf.stimuli.NLGP(24, gain=gain).sample(key, 50))
            np.testing.assert_allclose(np.abs(drawn), 1, rtol=1e-6)
    assert [lf.marginals.ErfNormal(gain).kurtosis for gain in (5e-324, 1e300)] == pytest.approx(
        [3, 1], abs=1e-12
    )
