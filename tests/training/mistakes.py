"""A table of mistakes in what is to be trained. Run as a program, it makes them all, in a process of its own.

In the tests' own process the type checker would refuse many of them before the library does.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from mistake import Mistake, attempt

NAN, INF = float("nan"), float("inf")
WHOLE = "a whole number from"


def task(lf: Any, **values: Any) -> Any:
    return lf.Discrimination(
        lf.stimuli.Ising((8,), coupling=0.3), lf.stimuli.Ising((8,), coupling=0.7), **values
    )


def train(what: str, expected: str, got: str, advice: str, /, **changes: Any) -> Mistake:
    """A call of `train` with something wrong; a value may be a function of the package that makes it."""

    def make(lf: Any) -> Any:
        made = {
            name: value(lf) if isinstance(value, Later) else value
            for name, value in changes.items()
        }
        first = (
            made.pop("task", None) or task(lf),
            made.pop("network", None) or lf.networks.SingleNeuron(),
        )
        return lf.train(*first, **({"steps": 2, "batch": 4} | made))

    return Mistake(make, what, expected, got, advice)


class Later:
    """A value that needs the package."""

    def __init__(self, make: Any):
        self.make = make

    def __call__(self, lf: Any) -> Any:
        return self.make(lf)


def count(name: str, value: Any, got: str, low: int = 1) -> Mistake:
    return train(
        f"`{name}`", f"{WHOLE} {low} to", got, "Give a whole number in that range", **{name: value}
    )


def rate(
    value: Any, got: str, expected: str = "positive", advice: str = "Give a plain number"
) -> Mistake:
    return train("`learning_rate`", expected, got, advice, learning_rate=value)


def schedule(function: Any, got: str) -> Mistake:
    return rate(
        function,
        got,
        "a function of the step that returns one number",
        "optax.cosine_decay_schedule",
    )


def initial(value: Any, expected: str, got: str) -> Mistake:
    return train(
        "`initial`",
        expected,
        got,
        "Give (neuron, *shape) or (member, neuron, *shape)",
        initial=value,
    )


def optimizer(value: Any, got: str) -> Mistake:
    expected = "a function of `learning_rate` that returns an optax transformation"
    return train(
        "`optimizer`", expected, got, "functools.partial(optax.sgd, momentum=0.9)", optimizer=value
    )


def record(what: str, expected: str, got: str, advice: str, /, **values: Any) -> Mistake:
    return Mistake(lambda lf: lf.Record(**values), what, expected, got, advice)


def discrimination(what: str, expected: str, got: str, advice: str, /, **values: Any) -> Mistake:
    return Mistake(lambda lf: task(lf, **values), what, expected, got, advice)


def network(
    name: str, what: str, expected: str, got: str, advice: str, /, **values: Any
) -> Mistake:
    return Mistake(lambda lf: getattr(lf.networks, name)(**values), what, expected, got, advice)


def classes(make: Any, what: str, expected: str, got: str, advice: str) -> Mistake:
    return Mistake(lambda lf: lf.Discrimination(*make(lf)), what, expected, got, advice)


def two_rates(step: Any) -> Any:
    import jax.numpy as jnp

    return jnp.stack([step, step])


def raising_value_error(step: Any) -> Any:
    raise ValueError("first line\nsecond line")


def _ones(*shape: int) -> Any:
    return [_ones(*shape[1:])] * shape[0] if shape else 1.0


SWEPT = Later(lambda lf: task(lf, l2=[0.1, 0.2, 0.3]))
ONE_HOT = Later(lambda lf: task(lf, labels="one-hot"))
RARE = Later(lambda lf: task(lf, proportions=(0.001, 0.999)))
LABELS, PROPORTIONS = "Give one number a class", "Give one positive number a class"

MISTAKES = {
    # train
    "task a stimulus": train(
        "`task`",
        "a Discrimination",
        "Ising(",
        "See `lf.Discrimination`",
        task=Later(lambda lf: lf.stimuli.Ising(8)),
    ),
    "network a name": train(
        "`network`", "a Network", "'committee'", "See `lf.", network="committee"
    ),
    "network a class": train(
        "`network`",
        "a Network",
        "SingleNeuron",
        "See `lf.",
        network=Later(lambda lf: lf.networks.SingleNeuron),
    ),
    "record a number": train("`record`", "a Record", "10", "See `lf.Record`", record=10),
    "steps zero": count("steps", 0, "0"),
    "steps negative": count("steps", -5, "-5"),
    "steps fractional": count("steps", 2.5, "2.5"),
    "steps a text": count("steps", "100", "'100'"),
    "steps nan": count("steps", NAN, "nan"),
    "steps true": count("steps", True, "True"),
    "batch zero": count("batch", 0, "0"),
    "batch none": count("batch", None, "None"),
    "batch too small for its classes": train(
        "`batch`",
        "large enough to hold a draw of every class",
        "4",
        "The rarest class has probability 0.001",
        task=RARE,
    ),
    "batch smaller than the classes": train(
        "`batch`", "large enough to hold a draw of every class", "1", "The rarest class", batch=1
    ),
    "members zero": count("members", 0, "0"),
    "members fractional": count("members", 1.5, "1.5"),
    "members a list": count("members", [3], "[3]"),
    "members against a sweep": train(
        "The number of members",
        "the same wherever",
        "the task has 3, `members` has 2",
        "Repeat values",
        task=SWEPT,
        members=2,
    ),
    "two sweeps against each other": train(
        "The number of members",
        "the same wherever",
        "the task has 3, the learning rate has 2",
        "Repeat values",
        task=SWEPT,
        learning_rate=[0.1, 0.2],
    ),
    "sweeps within a task": train(
        "Swept numbers",
        "of one length",
        "coupling has 2, l2 has 3",
        "Repeat the shorter",
        task=Later(
            lambda lf: lf.Discrimination(
                lf.stimuli.Ising(8, coupling=[0.1, 0.2]), lf.stimuli.Ising(8), l2=[0.1, 0.2, 0.3]
            )
        ),
    ),
    "seed negative": count("seed", -1, "-1", low=0),
    "seed too large": count("seed", 2**63, "9223372036854775808", low=0),
    "seed a text": count("seed", "zero", "'zero'", low=0),
    "rate zero": rate(0, "0.0"),
    "rate negative": rate(-0.1, "-0.1"),
    "rate infinite": rate(INF, "inf"),
    "rate a text": rate("fast", "'fast'"),
    "rate none": rate(None, "None"),
    "rate empty": rate([], "an array of shape (0,)", "one number, or a one-dimensional array"),
    "rate a table": rate(
        [[0.1, 0.2]], "an array of shape (1, 2)", "one number, or a one-dimensional array"
    ),
    "one rate of many negative": rate([0.1, -0.2], "-0.2"),
    "schedule without a step": schedule(lambda: 0.1, "one that fails (<lambda>"),
    "schedule of text": schedule(lambda step: "slow", "one that fails ("),
    "schedule of several": schedule(two_rates, "one that returns"),
    "schedule that raises": schedule(
        raising_value_error, "one that fails (first line second line)"
    ),
    "estimator misspelled": train(
        "The estimator",
        "one of epochs, exact, independent, orbit, shared",
        "'orbits'",
        "Did you mean `orbit`?",
        estimator="orbits",
    ),
    "estimator a list": train(
        "The estimator",
        "one of epochs, exact, independent, orbit, shared",
        "['orbit']",
        "",
        estimator=["orbit"],
    ),
    "exact without a theory": train(
        "The estimator `exact`",
        "asked for where a theory knows the gradient",
        "Committee on Ising, Ising",
        'Use "orbit"',
        network=Later(lambda lf: lf.networks.Committee(2, "tanh")),
        estimator="exact",
    ),
    "orbit without symmetry": train(
        "Every stimulus for the estimator `orbit`",
        "sign symmetric",
        "Gaussian(shape=(8,), xi=0.5, scale=1.0, offset=1.0), which is not",
        'Use estimator="independent"',
        task=Later(lambda lf: lf.Discrimination(*[lf.stimuli.Gaussian(8, xi=0.5, offset=1)] * 2)),
        estimator="orbit",
    ),
    "optimizer misspelled": train(
        "The optimizer",
        "one of adabelief, adagrad, adam",
        "'addam'",
        "Did you mean `adam`?",
        optimizer="addam",
    ),
    "optimizer a number": train(
        "The optimizer", "one of adabelief, adagrad, adam", "3", "", optimizer=3
    ),
    "optimizer without a rate": optimizer(lambda: None, "one that fails (<lambda>"),
    "optimizer of nothing": optimizer(lambda learning_rate: None, "None"),
    "initial a text": initial("zeros", "an array of numbers", "'zeros'"),
    "initial complex": initial([[1j] * 8], "an array of numbers", "1j"),
    "initial nan": initial([[NAN] + [0.0] * 7], "finite throughout", "1 nan or infinite"),
    "initial of another lattice": initial(
        _ones(1, 9), "of shape (1, 8) or (1, 1, 8)", "shape (1, 9)"
    ),
    "initial of one axis": initial(_ones(8), "of shape (1, 8) or (1, 1, 8)", "shape (8,)"),
    "initial of too many": initial(
        _ones(3, 1, 8), "of shape (1, 8) or (1, 1, 8)", "shape (3, 1, 8)"
    ),
    "initial empty": initial([], "a non-empty array", "shape (0,)"),
    "rest negative": train(
        "`stop_tol`", "zero or positive", "-1.0", "Give a small fraction", stop_tol=-1
    ),
    "rest a text": train(
        "`stop_tol`", "zero or positive", "'soon'", "Give a plain number", stop_tol="soon"
    ),
    "progress no function": train(
        "`on_progress`", "a function", "True", "It is called between chunks", on_progress=True
    ),
    "cancel no function": train(
        "`cancel`", "a function", "False", "It is called between chunks", cancel=False
    ),
    "several outputs for one neuron": train(
        "The task for SingleNeuron",
        "one with a single output",
        "2 outputs",
        "Use `TwoLayer`",
        task=ONE_HOT,
    ),
    "outputs that do not divide": train(
        "`hidden`",
        "a multiple of the 2 outputs",
        "3",
        "Give every output as many",
        task=ONE_HOT,
        network=Later(lambda lf: lf.networks.Committee(3)),
    ),
    "records too large": train(
        "The memory for records",
        "at most 4 GB",
        "32.0 GB",
        "Record less often",
        steps=10**9,
        record=Later(lambda lf: lf.Record(every=1, quantities=("weights",))),
    ),
    "evaluation too small": train(
        "`evaluate`",
        "large enough to hold a draw of every class",
        "10",
        "The rarest class",
        task=RARE,
        batch=5000,
        record=Later(lambda lf: lf.Record(evaluate=10)),
    ),
    # Record
    "every zero": record(
        "`every`", "a whole number of at least 1", "0", "Give a number of steps", every=0
    ),
    "every fractional": record(
        "`every`", "a whole number of at least 1", "0.5", "Give a number of steps", every=0.5
    ),
    "every true": record(
        "`every`", "a whole number of at least 1", "True", "Give a number of steps", every=True
    ),
    "evaluate negative": record(
        "`evaluate`", "a whole number of at least 1", "-1", "or of samples", evaluate=-1
    ),
    "what a text": record(
        "`quantities`", "a tuple of names", "'weights'", "For example", quantities="weights"
    ),
    "what none": record("`quantities`", "a tuple of names", "None", "For example", quantities=None),
    "what misspelled": record(
        "A recorded quantity",
        "accuracy, biases, ipr",
        "'lost'",
        "Did you mean `loss`?",
        quantities=("lost",),
    ),
    "what a number": record(
        "A recorded quantity", "accuracy, biases, ipr", "3", "", quantities=(3,)
    ),
    # Discrimination
    "one class": classes(
        lambda lf: [lf.stimuli.Ising(8)],
        "The stimuli of a task",
        "at least two",
        "1",
        "Give one stimulus a class",
    ),
    "class a number": classes(
        lambda lf: [lf.stimuli.Ising(8), 3], "`stimuli`", "a stimulus", "3", "Choose one of"
    ),
    "class a class": classes(
        lambda lf: [lf.stimuli.Ising, lf.stimuli.Ising],
        "`stimuli`",
        "a stimulus",
        "the class Ising",
        "Call it: Ising()",
    ),
    "class a network": classes(
        lambda lf: [lf.stimuli.Ising(8), lf.networks.SingleNeuron()],
        "`stimuli`",
        "a stimulus",
        "SingleNeuron(",
        "Choose one of",
    ),
    "lattices differ": classes(
        lambda lf: [lf.stimuli.Ising(8), lf.stimuli.Ising(9)],
        "The lattices of the stimuli",
        "all the same",
        "(8,), (9,)",
        "Give every class",
    ),
    "labels misspelled": discrimination(
        "`labels`", "one-hot, signs, zero-one", "'sign'", "Did you mean `signs`?", labels="sign"
    ),
    "labels too many": discrimination(
        "`labels`",
        "one number for each of 2 classes",
        "(0.0, 1.0, 2.0)",
        "Add or drop",
        labels=(0, 1, 2),
    ),
    "labels empty": discrimination(
        "`labels`", "one number for each of 2 classes", "()", "Add or drop", labels=()
    ),
    "labels a number": discrimination("`labels`", "a sequence of numbers", "1", LABELS, labels=1),
    "labels nan": discrimination("`labels`", "finite", "(0, nan)", LABELS, labels=(0, NAN)),
    "labels for the cross-entropy": discrimination(
        "`labels`",
        "0 and 1, or one-hot",
        "'signs'",
        "Use labels 0 and 1",
        labels="signs",
        loss="cross-entropy",
    ),
    "proportions negative": discrimination(
        "`proportions`", "positive", "(-0.5, 1.5)", "Leave out a class", proportions=(-0.5, 1.5)
    ),
    "proportions zero": discrimination(
        "`proportions`", "positive", "(0.0, 1.0)", "Leave out a class", proportions=(0, 1)
    ),
    "proportions too few": discrimination(
        "`proportions`",
        "one number for each of 2 classes",
        "(1.0,)",
        "Add or drop",
        proportions=(1,),
    ),
    "proportions a text": discrimination(
        "`proportions`", "a sequence of numbers", "'half'", PROPORTIONS, proportions="half"
    ),
    "proportions infinite": discrimination(
        "`proportions`", "finite", "(1, inf)", PROPORTIONS, proportions=(1, INF)
    ),
    "loss misspelled": discrimination(
        "`loss`",
        "absolute, cross-entropy, mse",
        "'crossentropy'",
        "Did you mean `cross-entropy`?",
        loss="crossentropy",
    ),
    "penalty negative": discrimination(
        "`l2`", "zero or positive", "-0.1", "Give a plain number", l2=-0.1
    ),
    "field misspelled": discrimination(
        "A field of Discrimination",
        "labels, loss",
        "'label'",
        "Did you mean `labels`?",
        label="signs",
    ),
    # networks
    "activation misspelled": network(
        "SingleNeuron",
        "`activation`",
        "identity, relu",
        "'rely'",
        "Did you mean `relu`?",
        activation="rely",
    ),
    "init misspelled": network(
        "SingleNeuron",
        "`init`",
        "basis, bump, glorot",
        "'xavier'",
        "Choose one from that list",
        init="xavier",
    ),
    "init scale zero": network(
        "SingleNeuron", "`init_scale`", "positive", "0.0", "Give a plain number", init_scale=0
    ),
    "hidden zero": network(
        "Committee", "`hidden`", "a whole number from 1 to 100000", "0", "in that range", hidden=0
    ),
    "hidden fractional": network(
        "TwoLayer",
        "`hidden`",
        "a whole number from 1 to 100000",
        "2.5",
        "in that range",
        hidden=2.5,
    ),
    "bias misspelled": network(
        "Committee",
        "`bias`",
        "fixed, halves, none, trained",
        "'half'",
        "Did you mean `halves`?",
        bias="half",
    ),
    "bias infinite": network(
        "Committee", "`bias_value`", "a finite number", "inf", "Give a plain number", bias_value=INF
    ),
    "hidden of one neuron": network(
        "SingleNeuron", "A field of SingleNeuron", "activation, init", "'hidden'", "", hidden=3
    ),
}


def main() -> dict[str, Any]:
    """What came of each mistake, and how long it took; nothing may have been compiled for any of them."""
    from localfields.training import engine

    outcomes = {}
    for name, mistake in MISTAKES.items():
        begin, before = time.perf_counter(), engine.TRACES["advance"]
        outcomes[name] = attempt(mistake)
        outcomes[name] |= {
            "seconds": time.perf_counter() - begin,
            "traced": engine.TRACES["advance"] - before,
        }
    return outcomes


if __name__ == "__main__":
    warnings.simplefilter("error")
    json.dump(main(), sys.stdout)
