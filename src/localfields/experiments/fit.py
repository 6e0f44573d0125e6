"""A baseline as a method of an experiment: the fields that it learns from samples of the classes."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from .._prng import STREAM, member_keys
from .._spec import Count, Nested, Seeds, declare, member, num_members
from .._types import Field, Seed, Whole, working_dtype
from ..baselines import Baseline, FastICA, Fitted
from ..errors import InputError
from ..networks import Network
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, experiment_json, made_with
from .experiment import Method


class Fit(Method):
    """Fields that a baseline learns from samples of all classes, without their labels.

    The classes are mixed by their proportions. The result is a trajectory of a single record, whose neurons are the
    components; there is no flow time, and the network of the experiment has no part in it.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Kur((12,), xi=xi, k=3) for xi in (0.5, 1)))
        >>> run = lf.Experiment(task, method=Fit(FastICA(4), samples=2000)).run()
        >>> run.weights.shape
        (1, 1, 4, 12)
    """

    baseline: Field[Baseline, Baseline | str | Mapping[str, Any]] = declare(
        Nested("baseline"), default=FastICA(), help="fast-ica, pca, sparse-coding, rbm, …"
    )
    samples: Whole = declare(
        Count(low=2, high=10**8), default=100_000, help="number of samples, of all classes together"
    )
    members: Whole = declare(
        Count(high=10**5),
        default=1,
        help="how many fits, each of its own samples and its own start",
    )
    seed: Seed = declare(Seeds(), default=0, help="of everything random; or one a member")

    def run(self, task: Discrimination, network: Network, initial: Any, **more: Any) -> Trajectory:
        """Draw samples and fit, one member after another."""
        if initial is not None:
            raise InputError("A baseline has no initial fields. Leave `initial` out.")
        seeds = self.seed if isinstance(self.seed, tuple) else (self.seed,)
        counts = {len(seeds), self.members, num_members(task) or 1} - {1}
        if len(counts) > 1:
            raise InputError(
                "The number of members is not the same everywhere: "
                f"{' and '.join(map(str, sorted(counts)))}. "
                "Give one value per member."
            )
        count = max(counts, default=1)
        clock = time.perf_counter()
        keys = member_keys(self.seed, count, STREAM)
        swept = num_members(task) is not None
        fitted = [self._fit(member(task, m) if swept else task, keys[m]) for m in range(count)]
        fields = np.stack([one.fields for one in fitted]).reshape(count, -1, *task.shape)
        settings = {
            "baseline": self.baseline.to_json(),
            "samples": self.samples,
            "members": count,
            "seed": Seeds().encode(self.seed),
        }
        return Trajectory(
            steps=np.zeros(1, int),
            times=np.zeros(1),
            initial=fields,
            final=fields,
            series={"weights": fields[:, None]},
            outcome=tuple(
                Outcome("ok", -1) if one.converged else Outcome("not converged", one.iterations)
                for one in fitted
            ),
            experiment=experiment_json(task, network, "fit", settings, precision=working_dtype()),
            manifest={
                **made_with(working_dtype()),
                "scikit-learn": importlib.metadata.version("scikit-learn"),
                "iterations": [one.iterations for one in fitted],
                "notes": [one.notes for one in fitted],
                "run_seconds": time.perf_counter() - clock,
            },
        )

    def _fit(self, task: Discrimination, key: jax.Array) -> Fitted:
        for_draws, for_fit = jax.random.split(key)
        x = draw_mixture(task, for_draws, self.samples)
        return self.baseline.fit(x, int(jax.random.bits(for_fit, dtype=np.uint32)))


def draw_mixture(task: Discrimination, key: jax.Array, num: int) -> np.ndarray:
    """Samples of all classes, (num, size), class after class, as many of each as its proportion says (rounded)."""
    ends = np.rint(np.cumsum(task.priors) * num).astype(int)
    counts = np.diff(ends, prepend=0)
    keys = jax.random.split(key, len(counts))
    parts = [
        np.asarray(one.sample(k, int(n)))
        for one, k, n in zip(task.stimuli, keys, counts, strict=True)
        if n
    ]
    return np.concatenate(parts)
