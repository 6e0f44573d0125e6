"""A baseline as a method of an experiment: it learns fields from samples of the classes."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from .._memory import sample_memory
from .._prng import STREAM, member_keys
from .._spec import Count, Nested, Seeds, declare, member, num_members
from .._types import Field, Seed, Whole, working_dtype
from ..baselines import Baseline, FastICA, Fitted
from ..errors import InputError
from ..networks import Network
from ..tasks import Discrimination
from ..trajectory import Outcome, Trajectory, experiment_json, made_with
from .experiment import Method

FIT_COPIES = 8  # of the samples: drawn, mixed, in double precision, whitened


class Fit(Method):
    """Fields that a baseline learns from samples of all classes, without their labels.

    The classes are mixed by their proportions. The result is a trajectory of a single record, whose
    neurons are the components; there is no flow time, and the network of the experiment has no part
    in it.

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
        Count(high=10**5), default=1, help="how many fits, each of its own samples and start"
    )
    seed: Seed = declare(Seeds(), default=0, help="seed for all random numbers; or one per member")

    def run(self, task: Discrimination, network: Network, initial: Any, **more: Any) -> Trajectory:
        """Draw samples and fit, one member after another."""
        if initial is not None:
            raise InputError("A baseline has no initial fields. Leave `initial` out.")
        seeds = self.seed if isinstance(self.seed, tuple) else (self.seed,)
        counts = {len(seeds), self.members, num_members(task) or 1} - {1}
        if len(counts) > 1:
            raise InputError(
                "The number of members is not the same everywhere: "
                f"{' and '.join(map(str, sorted(counts)))}. Give one value per member."
            )
        count = max(counts, default=1)
        sample_memory(self.samples, task.size, FIT_COPIES).check()
        clock = time.perf_counter()
        swept = num_members(task) is not None
        fits = [
            self._fit(member(task, index) if swept else task, key)
            for index, key in enumerate(member_keys(self.seed, count, STREAM))
        ]
        fields = np.stack([fitted.fields for fitted in fits]).reshape(count, -1, *task.shape)
        settings = {
            "baseline": self.baseline.to_json(),
            "samples": self.samples,
            "members": count,
            "seed": Seeds().encode(self.seed),
        }
        # A fit has no course over time: one record, at step 0.
        return Trajectory(
            steps=np.zeros(1, int),
            times=np.zeros(1),
            initial=fields,
            final=fields,
            series={"weights": fields[:, None]},
            outcome=tuple(
                Outcome("ok") if fitted.converged else Outcome("not converged", fitted.iterations)
                for fitted in fits
            ),
            experiment=experiment_json(task, network, "fit", settings, precision=working_dtype()),
            manifest={
                **made_with(working_dtype()),
                "scikit-learn": importlib.metadata.version("scikit-learn"),
                "iterations": [fitted.iterations for fitted in fits],
                "notes": [fitted.notes for fitted in fits],
                "run_seconds": time.perf_counter() - clock,
            },
        )

    def _fit(self, task: Discrimination, key: jax.Array) -> Fitted:
        for_samples, for_fit = jax.random.split(key)
        samples = draw_mixture(task, for_samples, self.samples)
        return self.baseline.fit(samples, int(jax.random.bits(for_fit, dtype=np.uint32)))


def draw_mixture(task: Discrimination, key: jax.Array, num: int) -> np.ndarray:
    """Samples of all classes, (num, size), class after class, by their proportions (rounded)."""
    # Rounding the cumulative sums, not the counts, makes them add up to `num`.
    counts = np.diff(np.rint(np.cumsum(task.priors) * num).astype(int), prepend=0)
    keys = jax.random.split(key, len(counts))
    parts = zip(task.stimuli, keys, counts, strict=True)
    return np.concatenate([np.asarray(x.sample(k, int(n))) for x, k, n in parts if n])
