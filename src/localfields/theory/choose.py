"""Which theory describes a task: the one place that chooses.

`predict`, `train(estimator="exact")` and the explorer all ask `best_for`. A theory takes part by
being defined, in the package or in a plugin; it says itself what it covers, whether exactly, and
with which priority.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from .._spec import Choice, Declaration, declare, registered
from ..networks import Network
from ..stimuli import Stimulus
from ..tasks import Discrimination
from .base import Coverage, Flow, NeuronTheory, Response, Theory, labelled_stimuli, not_covered


def best_for(task: Discrimination, network: Network) -> Theory | None:
    """The best theory of a network on a task: exact first, then by priority; None if none applies.

    Args:
        task: Without swept numbers.
        network: Without swept numbers.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Gaussian((40,), xi=xi) for xi in (1, 3)))
        >>> best_for(task, lf.networks.Committee(3))
        GaussianCommittee(distribution='exact')
    """
    # Theories of one neuron take part through `PerClass`, which chooses among them class by class.
    theories: list[Any] = [
        cls()
        for cls in registered("theory").values()
        if cls is not BestKnown and (cls is PerClass or not issubclass(cls, NeuronTheory))
    ]
    return _best((theory, theory.covers(task, network)) for theory in theories)


def _best(candidates: Iterable[tuple[Any, Coverage]]) -> Any:
    """Exact before approximate, then the highest priority; of equals the first by name."""
    covering = [(theory, coverage) for theory, coverage in candidates if coverage]
    # `max` returns the first of equals, and theories are registered in the order of their names.
    best = max(covering, key=lambda pair: (pair[1].exact, pair[0].priority), default=(None, None))
    return best[0]


ACCURACY = Declaration(
    Choice(("full", "coarse")),
    help="full, or coarse: faster, and accurate enough for a verdict",
)


class PerClass(NeuronTheory):
    """One ReLU neuron, each class by the best theory of its response.

    Elliptical and Ising data are described exactly, others by eq. 5 of the paper, unless a theory
    of your own covers them better.

    Example:
        >>> import localfields as lf
        >>> PerClass().response_theory(lf.stimuli.StudentT((40,)))
        LinearResponse(slope='exact')
    """

    priority: ClassVar[int] = 2

    accuracy: str = declare(ACCURACY, default="full")

    def response_theory(self, stimulus: Stimulus) -> NeuronTheory | None:
        """The best theory of a class; None if there is none."""
        theories = [
            cls()
            for cls in registered("theory").values()
            if issubclass(cls, NeuronTheory) and cls is not PerClass
        ]
        best = _best((theory, theory.covers_class(stimulus)) for theory in theories)
        return best.coarse() if best and self.accuracy == "coarse" else best

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """As the best theory of the class says."""
        best = self.response_theory(stimulus)
        if best is not None:
            return best.covers_class(stimulus)
        return not_covered(f"No theory describes the response to {stimulus!r}.")

    def response(self, stimulus: Stimulus) -> Response:
        """The response of one class."""
        self.covers_class(stimulus).require()
        best = self.response_theory(stimulus)
        assert best is not None
        return best.response(stimulus)

    def coarse(self) -> PerClass:
        """With the coarse version of every response."""
        return self.replace(accuracy="coarse")

    def title(self, task: Discrimination) -> str:
        """The theories of the labelled classes."""
        names = {
            type(self.response_theory(stimulus)).__name__ for stimulus in labelled_stimuli(task)
        }
        return " and ".join(sorted(names))


class BestKnown(Theory):
    """Whichever theory describes a network on a task best, as `best_for` chooses it.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising((40,), coupling=j) for j in (0.3, 0.7)))
        >>> BestKnown().covers(task, lf.networks.SingleNeuron()).exact
        True
    """

    accuracy: str = declare(ACCURACY, default="full")

    def covers(self, task: Discrimination, network: Network) -> Coverage:
        """As the best theory says; if there is none, why one ReLU neuron is not covered."""
        return (best_for(task, network) or PerClass()).covers(task, network)

    def flow(self, task: Discrimination, network: Network) -> Flow:
        """The flow of the best theory."""
        best = best_for(task, network) or PerClass()
        return (best.coarse() if self.accuracy == "coarse" else best).flow(task, network)

    def coarse(self) -> BestKnown:
        """With the coarse version of whatever is best."""
        return self.replace(accuracy="coarse")
