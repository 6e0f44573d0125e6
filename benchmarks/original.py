"""The original code against this one: seconds of a step, on one machine, in one process, with one
JAX.

`python benchmarks/original.py CHECKOUT`

CHECKOUT holds the paper's published code, github.com/leonlufkin/localization, at a commit that has
`localization/experiments/batched_online.py` (10232c0). Of the packages that it imports, those it
does not need for training are stood in for. Both train the setting of Figure 5 on NLGP: 40 sites,
one neuron, 5000 draws a step or what has their gradient variance. The time of a step is a
difference of two lengths, so that compiling does not count on either side; nothing is evaluated or
recorded in between.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import statistics
import sys
import time
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np

import localfields as lf
from localfields.figures.fig5 import BATCH, NETWORK, NLGPS, RATE, SEEDS, SITES, XI

GAIN, ROUNDS = 1.0, 5


def original(checkout: Path) -> Any:
    """The module that trains, of the original code."""
    sys.path.insert(0, str(checkout))
    whole = {
        name: _package(checkout, name)
        for name in ("", "datasets", "samplers", "models", "experiments")
    }
    for name in ("wandb", "nptyping"):
        sys.modules.setdefault(name, types.ModuleType(name))
    anything = types.SimpleNamespace(__class_getitem__=None)
    for name in ("NDArray", "Bool", "Floating", "Int"):
        setattr(sys.modules["nptyping"], name, _Any if name == "NDArray" else anything)
    # It was written when parts of it lived in a package of another name.
    sys.modules["nets"], sys.modules["nets.datasets"] = whole[""], whole["datasets"]
    base = importlib.import_module("localization.datasets.base")
    sys.modules["nets.datasets.base"] = base
    data: Any = whole["datasets"]
    data.Dataset, data.DatasetSplit, data.SinglePulseDataset = base.Dataset, base.DatasetSplit, None
    data.NonlinearGPDataset = importlib.import_module(
        "localization.datasets.nonlinear_gp"
    ).NonlinearGPDataset
    samplers: Any = whole["samplers"]
    found = importlib.import_module("localization.samplers.base")
    samplers.Sampler, samplers.EpochSampler, samplers.OnlineSampler = (
        found.Sampler,
        found.EpochSampler,
        None,
    )
    models: Any = whole["models"]
    vars(models).update(vars(importlib.import_module("localization.models.feedforward")))
    return importlib.import_module("localization.experiments.batched_online")


class _Any:
    def __class_getitem__(cls, item: Any) -> Any:
        return object


def _package(checkout: Path, name: str) -> types.ModuleType:
    """A package without running its `__init__`, which imports more than is needed."""
    whole = f"localization.{name}".rstrip(".")
    module = types.ModuleType(whole)
    module.__path__ = [str(checkout / "localization" / name)]
    sys.modules[whole] = module
    if name:
        setattr(sys.modules["localization"], name, module)
    return module


def train_original(code: Any, steps: int) -> np.ndarray:
    """Weights of one run of the original."""
    with contextlib.redirect_stdout(io.StringIO()):
        weights, _ = code.simulate(
            num_hiddens=1,
            init_scale=0.001,
            activation="relu",
            learning_rate=RATE,
            batch_size=BATCH,
            num_epochs=steps,
            xi1=XI[1],
            xi2=XI[0],
            gain=GAIN,
            num_dimensions=SITES,
            class_proportion=0.5,
            dataset_cls=code.datasets.NonlinearGPDataset,
            model_cls=code.models.SimpleNet,
            sampler_cls=code.samplers.EpochSampler,
            use_bias=False,
            save_=False,
            evaluation_interval=steps + 1,
        )
    return weights


def draw_original(code: Any, steps: int) -> None:
    """What it draws in so many steps, without training on it."""
    key = jax.random.PRNGKey(0)
    more = {
        "xi1": XI[1],
        "xi2": XI[0],
        "gain": GAIN,
        "num_dimensions": SITES,
        "num_exemplars": steps * BATCH,
    }
    data = code.datasets.NonlinearGPDataset(key=key, **more)
    for x, _ in code.batcher(
        code.samplers.EpochSampler(key=key, dataset=data, num_epochs=1), BATCH
    ):
        x.block_until_ready()


def train_ours(task: Any, members: int, steps: int, estimator: str, batch: int) -> Any:
    """As many runs of ours at once."""
    record = lf.Record(every=steps, quantities=("ipr",))
    more = {
        "learning_rate": RATE,
        "steps": steps,
        "batch": batch,
        "members": members,
        "record": record,
    }
    return lf.train(task, NETWORK, estimator=estimator, **more)


def a_step(run: Any, few: int, many: int) -> float:
    """Seconds."""
    times = []
    for steps in (few, many):
        begin = time.perf_counter()
        run(steps)
        times.append(time.perf_counter() - begin)
    return (times[1] - times[0]) / (many - few)


def main() -> None:
    """Time them in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    code = original(parser.parse_args().checkout)
    pair: Any = [lf.stimuli.NLGP((SITES,), gain=GAIN, xi=xi) for xi in XI]
    one = lf.Discrimination(*pair)
    all_gains, count = NLGPS.task(SEEDS), SEEDS * len(NLGPS.values)
    ways = {
        "original": (1, lambda steps: train_original(code, steps), 20, 100),
        "original, drawing alone": (1, lambda steps: draw_original(code, steps), 20, 100),
        "the same draws, one run": (
            1,
            lambda steps: train_ours(one, 1, steps, "independent", BATCH),
            200,
            1000,
        ),
        f"as Figure 5, {count} runs": (
            count,
            lambda steps: train_ours(all_gains, count, steps, "orbit", NLGPS.samples),
            50,
            250,
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _, run, few, many in ways.values():  # compile
        a_step(run, few, many)
    for _ in range(ROUNDS):
        for name, (members, run, few, many) in ways.items():
            found[name].append(1e3 * a_step(run, few, many) / members)
    for name, times in found.items():
        ratio = statistics.median(
            old / new for old, new in zip(found["original"], times, strict=True)
        )
        print(
            f"{name:24s} {statistics.median(times):8.3f} ms a step and run, "
            f"{ratio:5.0f} times the original's speed"
        )


if __name__ == "__main__":
    main()
