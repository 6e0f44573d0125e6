"""The most exact description known of each class: what `predict` follows, and what `train(estimator="exact")` asks."""

from __future__ import annotations

from .._spec import Count, declare
from ..errors import InputError
from ..networks import Network
from ..stimuli import Ising, Stimulus
from ..tasks import EXACT, Discrimination
from .base import Flow, NeuronTheory, Response
from .networks.committee import ErfCommittee, GaussianCommittee
from .responses.effective import EffectiveFlow
from .responses.ising import ExactIsing
from .responses.linear import LinearResponse
from .responses.pulse import ExactPulse


class BestKnown(NeuronTheory):
    """For each class the most exact response known: elliptical and Ising data exactly, the rest by eq. 5 of the paper.

    Example:
        >>> import localfields as lf
        >>> BestKnown().response_theory(lf.stimuli.StudentT((40,)))
        LinearResponse(slope='exact')
    """

    frequencies: int = declare(
        256, Count(16, 16384), symbol="M", help="frequencies of the exact Ising response"
    )

    def response_theory(self, stimulus: Stimulus) -> NeuronTheory:
        """The theory that describes a class."""
        if stimulus.elliptical:
            return LinearResponse()
        return ExactIsing(self.frequencies) if isinstance(stimulus, Ising) else EffectiveFlow()

    def response(self, stimulus: Stimulus) -> Response:
        """The response of one class."""
        return self.response_theory(stimulus).response(stimulus)


def labelled(task: Discrimination) -> list[Stimulus]:
    """The classes that pull on a neuron: those whose label is not zero."""
    targets = task.targets()
    return [
        stimulus
        for stimulus, target in zip(task.stimuli, targets, strict=True)
        if (target != 0).any()
    ]


def is_exact(task: Discrimination) -> bool:
    """Whether `BestKnown` describes every class that matters without approximation."""
    return not any(
        isinstance(BestKnown().response_theory(stimulus), EffectiveFlow)
        for stimulus in labelled(task)
    )


def exact_flow(task: Discrimination, network: Network) -> Flow | None:
    """The exact population gradient of a task, or None where no theory here knows it."""
    neuron = (BestKnown(),) if is_exact(task) else ()
    for theory in (ExactPulse(), *neuron, GaussianCommittee(), ErfCommittee()):
        try:
            return theory.flow(task, network)
        except InputError:
            continue
    return None


EXACT.append(exact_flow)
