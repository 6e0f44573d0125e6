"""What the tests of training share as fixtures."""

import zlib
from collections.abc import Callable

import equinox as eqx
import pytest

import localfields as lf
from localfields import _registry
from localfields._prng import make_key
from localfields.theory.base import EXACT, not_covered


class Offered(lf.theory.Flow):
    """A flow from a function (task, network, params) → (loss, gradient)."""

    gradient: Callable = eqx.field(static=True)
    task: lf.Discrimination
    network: lf.networks.Network

    def __call__(self, params):
        return self.gradient(self.task, self.network, params)


@pytest.fixture
def seed(request):
    """A seed of the test's own, the same in every run."""
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def key(seed):
    """A key of the test's own, of the kind that training uses: it compiles in a third of the
    time.
    """
    return make_key(seed)


@pytest.fixture
def offer():
    """A function that offers a population gradient to `train(estimator="exact")`, until the test
    is over.
    """
    lf.theory.best_for  # noqa: B018  all theories are known before they are put aside
    known = _registry.CLASSES["theory"]
    before = dict(known)
    for name in set(known) - {"best-known", "per-class"}:
        del known[name]

    def enter(gradient, applies=lambda task, network: True, priority=0):
        class Toy(lf.theory.Theory):
            def covers(self, task, network):
                return EXACT if applies(task, network) else not_covered("Another network.")

            def flow(self, task, network):
                return Offered(gradient, task, network)

        Toy.priority = priority
        known[f"toy-{len(known)}"] = known.pop("toy")

    yield enter
    known.clear()
    known.update(before)
