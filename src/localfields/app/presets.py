"""Settings to begin with: one or more for every figure of the paper, read from the figures themselves."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._spec import member, num_members
from ..errors import InputError
from ..experiments import Experiment, Training
from ..experiments.texts import texts_of
from ..figures import all_figures
from .limits import Limits

NLGP = {"stimulus": "nlgp", "xi": "1,3", "members": "6", "batch": "60", "estimator": "orbit"}
OURS = {
    "A bump is born (NLGP, gain 100)": {**NLGP, "gain": "100", "steps": "1500"},
    "A wave is born (Gaussian)": {**NLGP, "stimulus": "gaussian", "steps": "1500"},
    "At the border (NLGP, gain 0.7)": {**NLGP, "gain": "0.7", "steps": "6000", "every": "20"},
}
# The figure that shows data alone has nothing to run: its three models, each with a run to watch.
DATA_MODELS = {
    "fig2: NLGP(0.01)": {**NLGP, "gain": "0.01", "steps": "2000"},
    "fig2: NLGP(3)": {**NLGP, "steps": "2000"},
    "fig2: Kur(4)": {**NLGP, "stimulus": "kur", "k": "4", "steps": "2000"},
    "fig2: Kur(10)": {**NLGP, "stimulus": "kur", "steps": "2000"},
}


@functools.cache
def presets() -> dict[str, dict[str, str]]:
    """Texts by the name of the preset: ours first, then figure by figure."""
    found = dict(OURS)
    for name, figure in all_figures().items():
        if figure.group != "paper":
            continue
        if name == "fig2":
            found |= DATA_MODELS
        for label, experiment in figure.experiments("quick").items():
            for more, one in _single(experiment):
                texts = _typed(one)
                if texts is not None and texts not in found.values():
                    found[f"{name}: {label.removesuffix(': training')}{more}"] = texts
    return found


def _single(experiment: Experiment) -> Iterator[tuple[str, Experiment]]:
    """An experiment as one setting; of a sweep the first and the last."""
    method = experiment.method
    if not isinstance(method, Training):
        return
    count = num_members(experiment.task)
    if count is None:
        yield "", experiment
        return
    for index, word in ((0, " (first)"), (count - 1, " (last)")):
        alone = method.replace(members=4, seed=0)
        yield word, experiment.replace(task=member(experiment.task, index), method=alone)


def _typed(experiment: Experiment) -> dict[str, str] | None:
    """Its texts, with all recorded that the page draws; None where it has none, or is too large for the page."""
    method: Any = experiment.method
    if np.ndim(method.learning_rate) or isinstance(method.seed, tuple):
        return None
    try:
        one = experiment.replace(method=method.replace(quantities=Training().quantities))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            texts = texts_of(one)
        Limits().check(one)
    except InputError:
        return None
    return texts
