"""One run of `train`, all of it checked: where it starts, what it keeps, how it is followed, what comes out."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .._spec import Seeds
from .._types import working_dtype
from ..errors import Said, refuse
from ..networks import Network
from ..tasks import Discrimination, given_fields, initial_params
from ..trajectory import Outcome, Trajectory, made_with
from .engine import RUNNING, Setting, State, advance, observe, start_state
from .loop import Checkpointer, Loop, Progress
from .plan import Plan, flow_times
from .record import LARGEST, Record


@dataclasses.dataclass(frozen=True)
class Run:
    """A plan and the arguments of `train` that it was made of; these name the run."""

    plan: Plan
    task: Discrimination
    network: Network
    steps: int
    batch: int
    seed: int | tuple[int, ...]
    record: Record
    estimator: str
    optimizer: str | Callable[..., Any]
    initial: Any
    stop_tol: float | None

    def follow(
        self,
        on_progress: Callable[[Progress], Any] | None,
        cancel: Callable[[], bool] | None,
        checkpoint: Checkpointer | None,
        pause: float | None,
    ) -> Trajectory:
        """Compile, run and gather.

        Raises:
            InputError: When fields to start from do not fit, records would be too large, or a checkpoint is of another
                run.
        """
        plan, start = self.plan, self._start()
        size = self._record_bytes(start)
        specification = self._specification()
        clock = time.perf_counter()
        begin = start()
        forward = _divided(advance, plan.count)
        if plan.stream is not None:
            forward = functools.partial(plan.stream.forward, forward)
        state = forward(plan.program, plan.setting, begin, 0)
        first = jax.block_until_ready(_see(plan, state))
        compiled = time.perf_counter() - clock
        clock = time.perf_counter()
        at = self.record.at(self.steps)
        times = flow_times(np.asarray(at), plan.rate, plan.program.schedule)
        go, see = (
            functools.partial(forward, plan.program, plan.setting),
            functools.partial(_see, plan),
        )
        name = "" if checkpoint is None else _digest(specification)
        loop = Loop(go, see, at, times, self.stop_tol, on_progress, cancel, checkpoint, name, pause)
        state = loop.run(state, first)
        seconds = time.perf_counter() - clock
        series = {
            name: np.stack([np.asarray(one[name]) for one in loop.records], axis=1)
            for name in first
        }
        recorded, fields = len(loop.records), (self.network.hidden, *self.task.shape)
        if "weights" in series:
            series["weights"] = series["weights"].reshape(plan.count, recorded, *fields)
        return Trajectory(
            steps=np.asarray(at[:recorded]),
            times=times[..., :recorded],
            initial=np.asarray(begin.params["weights"]).reshape(plan.count, *fields),
            final=np.asarray(state.params["weights"]).reshape(plan.count, *fields),
            series=series,
            outcome=tuple(_outcome(int(bad)) for bad in np.asarray(state.bad)),
            specification=specification,
            manifest=_manifest(compiled, seconds, size),
            stopped=loop.stopped,
        )

    def _start(self) -> Callable[[], State]:
        """What makes the first state; fields that a user gave are checked at once."""
        plan, network, task = self.plan, self.network, self.task
        given = (
            None
            if self.initial is None
            else given_fields(self.initial, network.hidden, task.shape, plan.count)
        )

        def start() -> State:
            params = initial_params(task, network, self.seed, plan.count)
            if given is not None:
                params["weights"] = jnp.broadcast_to(
                    jnp.asarray(given, working_dtype()), params["weights"].shape
                )
            return start_state(plan.program, params)

        return start

    def _record_bytes(self, start: Callable[[], State]) -> int:
        size = self.record.nbytes(self.steps, jax.eval_shape(lambda: _see(self.plan, start())))
        if size > LARGEST:
            advice = "Record less often, or only reductions such as ('ipr', 'loss')."
            refuse(
                "The memory for records",
                Said(f"{size / 1e9:.1f} GB"),
                f"at most {LARGEST / 1e9:g} GB",
                advice,
            )
        return size

    def _specification(self) -> dict[str, Any]:
        plan, optimizer = self.plan, self.optimizer
        return {
            "task": self.task.to_json(),
            "network": self.network.to_json(),
            "learning_rate": np.asarray(plan.rate).tolist()
            if plan.program.schedule is None
            else "schedule",
            "steps": self.steps,
            "batch": self.batch,
            "members": plan.count,
            "seed": Seeds().encode(self.seed),
            "record": self.record.to_json(),
            "estimator": self.estimator,
            "optimizer": optimizer
            if isinstance(optimizer, str)
            else getattr(optimizer, "__name__", "custom"),
            "initial": None
            if self.initial is None
            else np.asarray(self.initial, np.float64).tolist(),
            "stop_tol": None if self.stop_tol is None else float(self.stop_tol),
        }


def _digest(specification: dict[str, Any]) -> str:
    """What tells this run's checkpoints from those of others; functions are told apart by their names alone."""
    plain = {**specification, "precision": str(np.dtype(working_dtype()))}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _see(plan: Plan, state: State) -> dict[str, jax.Array]:
    return _divided(observe, plan.count)(plan.view, plan.setting, state.params, state.step)


@functools.cache
def _divided(call: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`call`, with members divided over the devices where there are several and all get as many."""
    devices, each, same = jax.devices(), PartitionSpec("member"), PartitionSpec()
    if len(devices) == 1 or count % len(devices):
        return call
    state: Any = State(each, each, each, same) if call is advance else each  # pyright: ignore[reportArgumentType]  # a spec for each array
    setting: Any = Setting(each, same, each, each, same)  # pyright: ignore[reportArgumentType]  # a spec for each array
    more = {
        "mesh": Mesh(devices, ("member",)),
        "in_specs": (setting, state, same),
        "out_specs": state,
    }

    def part(static, *args):
        return jax.shard_map(functools.partial(call, static), check_vma=False, **more)(*args)

    return jax.jit(part, static_argnums=0)


def _outcome(bad: int) -> Outcome:
    if bad == RUNNING:
        return Outcome("ok", -1)
    return Outcome("diverged", bad) if bad >= 0 else Outcome("non-finite", -bad - 1)


def _manifest(compiled: float, seconds: float, size: int) -> dict[str, Any]:
    return {
        **made_with(working_dtype()),
        "matmul_precision": "highest",
        "compile_seconds": round(compiled, 4),
        "run_seconds": round(seconds, 4),
        "record_bytes": size,
    }
