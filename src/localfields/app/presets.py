"""Settings to start from: some of ours, and at least one for every figure of the paper."""

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

NLGP_TEXTS = {"stimulus": "nlgp", "xi": "1,3", "members": "6", "batch": "60", "estimator": "orbit"}
OUR_PRESETS = {
    "A bump is born (NLGP, gain 100)": {**NLGP_TEXTS, "gain": "100", "steps": "1500"},
    "A wave is born (Gaussian)": {**NLGP_TEXTS, "stimulus": "gaussian", "steps": "1500"},
    "At the border (NLGP, gain 0.7)": {**NLGP_TEXTS, "gain": "0.7", "steps": "6000", "every": "20"},
}
# Figure 2 shows data and trains nothing: a run to watch for each of its data models.
FIG2_PRESETS = {
    "fig2: NLGP(0.01)": {**NLGP_TEXTS, "gain": "0.01", "steps": "2000"},
    "fig2: NLGP(3)": {**NLGP_TEXTS, "steps": "2000"},
    "fig2: Kur(4)": {**NLGP_TEXTS, "stimulus": "kur", "k": "4", "steps": "2000"},
    "fig2: Kur(10)": {**NLGP_TEXTS, "stimulus": "kur", "steps": "2000"},
}


@functools.cache
def presets() -> dict[str, dict[str, str]]:
    """Texts by field for every preset: ours first, then figure by figure."""
    known = dict(OUR_PRESETS)
    for name, figure in all_figures().items():
        if figure.group != "paper":
            continue
        if name == "fig2":
            known |= FIG2_PRESETS
        for label, experiment in figure.experiments("quick").items():
            for suffix, setting in _settings(experiment):
                texts = _texts(setting)
                if texts is not None and texts not in known.values():
                    known[f"{name}: {label.removesuffix(': training')}{suffix}"] = texts
    return known


def _settings(experiment: Experiment) -> Iterator[tuple[str, Experiment]]:
    """An experiment that trains as one setting; a sweep as its first and its last."""
    method = experiment.method
    if not isinstance(method, Training):
        return
    count = num_members(experiment.task)
    if count is None:
        yield "", experiment
        return
    for index, suffix in ((0, " (first)"), (count - 1, " (last)")):
        task = member(experiment.task, index)
        yield suffix, experiment.replace(task=task, method=method.replace(members=4, seed=0))


def _texts(experiment: Experiment) -> dict[str, str] | None:
    """Its texts, recording all that the page draws; None if it has none or is too large."""
    method: Any = experiment.method
    if np.ndim(method.learning_rate) or isinstance(method.seed, tuple):
        return None
    try:
        setting = experiment.replace(method=method.replace(quantities=Training().quantities))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            texts = texts_of(setting)
        Limits().check(setting)
    except InputError:
        return None
    return texts
