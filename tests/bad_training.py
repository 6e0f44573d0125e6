"""Mistakes in what is to be trained, beside those of `bad_inputs`."""

from __future__ import annotations

from typing import Any

from mistake import Mistake

NAN, INF = (float("nan"), float("inf"))


def task(lf: Any, **values: Any) -> Any:
    return lf.Discrimination(
        lf.stimuli.Ising((8,), coupling=0.3), lf.stimuli.Ising((8,), coupling=0.7), **values
    )


def train(**changes: Any) -> Mistake:
    """A call of `train` with something wrong; a value may be a function of the package that
    makes it.
    """

    def make(lf: Any) -> Any:
        made = {
            name: value(lf) if isinstance(value, Later) else value
            for name, value in changes.items()
        }
        first = (
            made.pop("task", None) or task(lf),
            made.pop("network", None) or lf.networks.SingleNeuron(),
        )
        return lf.train(*first, **{"steps": 2, "batch": 4} | made)

    return make


class Later:
    """A value that needs the package."""

    def __init__(self, make: Any):
        self.make = make

    def __call__(self, lf: Any) -> Any:
        return self.make(lf)


def count(name: str, value: Any, low: int = 1) -> Mistake:
    return train(**{name: value})


def rate(value: Any) -> Mistake:
    return train(learning_rate=value)


def schedule(function: Any) -> Mistake:
    return rate(function)


def initial(value: Any) -> Mistake:
    return train(initial=value)


def optimizer(value: Any) -> Mistake:
    return train(optimizer=value)


def record(**values: Any) -> Mistake:
    return lambda lf: lf.Record(**values)


def discrimination(**values: Any) -> Mistake:
    return lambda lf: task(lf, **values)


def network(name: str, /, **values: Any) -> Mistake:
    return lambda lf: getattr(lf.networks, name)(**values)


def classes(make: Any) -> Mistake:
    return lambda lf: lf.Discrimination(*make(lf))


def two_rates(step: Any) -> Any:
    import jax.numpy as jnp

    return jnp.stack([step, step])


def raising_value_error(step: Any) -> Any:
    raise ValueError("first line\nsecond line")


def _ones(*shape: int) -> Any:
    return [_ones(*shape[1:])] * shape[0] if shape else 1.0


def _torus(lf: Any, side: int) -> Any:
    return lf.Discrimination(*(lf.stimuli.Gaussian((side, side), xi=xi) for xi in (1, 3)))


def _optax_sgd() -> Any:
    import optax

    return optax.sgd(0.1, momentum=0.9)


SWEPT = Later(lambda lf: task(lf, l2=[0.1, 0.2, 0.3]))
ONE_HOT = Later(lambda lf: task(lf, labels="one-hot"))
RARE = Later(lambda lf: task(lf, proportions=(0.001, 0.999)))
MISTAKES = {
    "task a stimulus": train(task=Later(lambda lf: lf.stimuli.Ising(8))),
    "network a name": train(network="committee"),
    "network a class": train(network=Later(lambda lf: lf.networks.SingleNeuron)),
    "record a number": train(record=10),
    "steps zero": count("steps", 0),
    "steps negative": count("steps", -5),
    "steps fractional": count("steps", 2.5),
    "steps a text": count("steps", "100"),
    "steps nan": count("steps", NAN),
    "steps true": count("steps", True),
    "batch zero": count("batch", 0),
    "batch none": count("batch", None),
    "batch too small for its classes": train(task=RARE),
    "batch smaller than the classes": train(batch=1),
    "members zero": count("members", 0),
    "members fractional": count("members", 1.5),
    "members a list": count("members", [3]),
    "members against a sweep": train(task=SWEPT, members=2),
    "two sweeps against each other": train(task=SWEPT, learning_rate=[0.1, 0.2]),
    "sweeps within a task": train(
        task=Later(
            lambda lf: lf.Discrimination(
                lf.stimuli.Ising(8, coupling=[0.1, 0.2]), lf.stimuli.Ising(8), l2=[0.1, 0.2, 0.3]
            )
        )
    ),
    "sweeps of two classes": classes(
        lambda lf: [lf.stimuli.Ising(8, coupling=[0.1, 0.2]), lf.stimuli.Ising(8, [0.1, 0.2, 0.3])]
    ),
    "classes equal": classes(lambda lf: [lf.stimuli.Ising(8), lf.stimuli.Ising(8)]),
    "classes equal for one member": classes(
        lambda lf: [lf.stimuli.Ising(8, coupling=[0.1, 0.2]), lf.stimuli.Ising(8, coupling=0.2)]
    ),
    "two of three classes equal": classes(
        lambda lf: [lf.stimuli.Ising(8, coupling=j) for j in (0.1, 0.2, 0.1)]
    ),
    "the same data twice": lambda lf: lf.data.sources(
        [[0.0, 1.0], [1.0, 2.0]], [[0.0, 1.0], [1.0, 2.0]]
    ),
    "blurs equal": lambda lf: lf.data.blurs(
        lf.stimuli.Samples([[0.0, 1.0], [1.0, 2.0], [5.0, 0.0]]), (1, 1)
    ),
    "labels equal": discrimination(labels=(1, 1)),
    "labels none in training": train(task=Later(lambda lf: task(lf, labels="none"))),
    "labels none in predict": lambda lf: lf.predict(task(lf, labels="none")),
    "members beyond memory": train(members=10**7),
    "batch beyond memory": train(batch=10**9),
    "evaluate beyond memory": train(record=Later(lambda lf: lf.Record(evaluate=10**9))),
    "lattice beyond memory": train(task=Later(lambda lf: _torus(lf, 4096)), batch=1000),
    "neurons beyond memory": train(
        task=Later(lambda lf: _torus(lf, 256)),
        network=Later(lambda lf: lf.networks.Committee(100_000)),
    ),
    "adam beyond memory": train(
        members=10**6,
        batch=4,
        optimizer="adam",
        record=Later(lambda lf: lf.Record(quantities=("ipr",))),
        network=Later(lambda lf: lf.networks.Committee(50)),
    ),
    "starts beyond memory": lambda lf: lf.predict(task(lf), starts=10**7),
    "lattice of a prediction beyond memory": lambda lf: lf.predict(_torus(lf, 4096)),
    "members of a flow beyond memory": lambda lf: lf.solve(
        task(lf), lf.theory.ExactIsing(), members=10**7
    ),
    "samples beyond memory": lambda lf: lf.stimuli.Gaussian((1024, 1024)).sample(0, 2000),
    "samples of a baseline beyond memory": lambda lf: lf.Experiment(
        task(lf), method=lf.Fit(samples=10**8)
    ).run(),
    "seed negative": count("seed", -1, low=0),
    "seed too large": count("seed", 2**63, low=0),
    "seed a text": count("seed", "zero", low=0),
    "rate zero": rate(0),
    "rate negative": rate(-0.1),
    "rate infinite": rate(INF),
    "rate a text": rate("fast"),
    "rate none": rate(None),
    "rate empty": rate([]),
    "rate a table": rate([[0.1, 0.2]]),
    "one rate of many negative": rate([0.1, -0.2]),
    "schedule without a step": schedule(lambda: 0.1),
    "schedule of text": schedule(lambda step: "slow"),
    "schedule of several": schedule(two_rates),
    "schedule that raises": schedule(raising_value_error),
    "estimator misspelled": train(estimator="orbits"),
    "estimator a list": train(estimator=["orbit"]),
    "exact without a theory": train(
        network=Later(lambda lf: lf.networks.Committee(2, "tanh")), estimator="exact"
    ),
    "orbit without symmetry": train(
        task=Later(
            lambda lf: lf.Discrimination(
                *(lf.stimuli.Gaussian(8, xi=xi, offset=1) for xi in (0.5, 0.6))
            )
        ),
        estimator="orbit",
    ),
    "optimizer misspelled": train(optimizer="addam"),
    "optimizer a number": train(optimizer=3),
    "optimizer with its rate": train(optimizer=Later(lambda lf: _optax_sgd())),
    "optimizer with an unknown option": train(optimizer="sgd:momentun=0.9"),
    "optimizer with an option of another": train(optimizer="lion:eps=0.1"),
    "optimizer with a rate as option": train(optimizer="adam:learning_rate=0.1"),
    "optimizer option without a value": train(optimizer="sgd:momentum"),
    "optimizer option twice": train(optimizer="sgd:momentum=0.9,momentum=0.8"),
    "optimizer option infinite": train(optimizer="sgd:momentum=inf"),
    "optimizer flag a number": train(optimizer="sgd:nesterov=1"),
    "stored optimizer with an unknown option": lambda lf: lf.Training(optimizer="sgd:b1=0.9"),
    "optimizer without a rate": optimizer(lambda: None),
    "optimizer of nothing": optimizer(lambda learning_rate: None),
    "initial a text": initial("zeros"),
    "initial complex": initial([[1j] * 8]),
    "initial nan": initial([[NAN] + [0.0] * 7]),
    "initial of another lattice": initial(_ones(1, 9)),
    "initial of one axis": initial(_ones(8)),
    "initial of too many": initial(_ones(3, 1, 8)),
    "initial empty": initial([]),
    "rest negative": train(stop_tol=-1),
    "rest a text": train(stop_tol="soon"),
    "progress no function": train(on_progress=True),
    "cancel no function": train(cancel=False),
    "several outputs for one neuron": train(task=ONE_HOT),
    "outputs that do not divide": train(
        task=ONE_HOT, network=Later(lambda lf: lf.networks.Committee(3))
    ),
    "records too large": train(
        steps=10**9, record=Later(lambda lf: lf.Record(every=1, quantities=("weights",)))
    ),
    "evaluation too small": train(
        task=RARE, batch=5000, record=Later(lambda lf: lf.Record(evaluate=10))
    ),
    "every zero": record(every=0),
    "every fractional": record(every=0.5),
    "every true": record(every=True),
    "evaluate negative": record(evaluate=-1),
    "what a text": record(quantities="weights"),
    "what none": record(quantities=None),
    "what misspelled": record(quantities=("lost",)),
    "what a number": record(quantities=(3,)),
    "one class": classes(lambda lf: [lf.stimuli.Ising(8)]),
    "class a number": classes(lambda lf: [lf.stimuli.Ising(8), 3]),
    "class a class": classes(lambda lf: [lf.stimuli.Ising, lf.stimuli.Ising]),
    "class a network": classes(lambda lf: [lf.stimuli.Ising(8), lf.networks.SingleNeuron()]),
    "lattices differ": classes(lambda lf: [lf.stimuli.Ising(8), lf.stimuli.Ising(9)]),
    "labels misspelled": discrimination(labels="sign"),
    "labels too many": discrimination(labels=(0, 1, 2)),
    "labels empty": discrimination(labels=()),
    "labels a number": discrimination(labels=1),
    "labels nan": discrimination(labels=(0, NAN)),
    "labels for the cross-entropy": discrimination(labels="signs", loss="cross-entropy"),
    "proportions negative": discrimination(proportions=(-0.5, 1.5)),
    "proportions zero": discrimination(proportions=(0, 1)),
    "proportions too few": discrimination(proportions=(1,)),
    "proportions a text": discrimination(proportions="half"),
    "proportions infinite": discrimination(proportions=(1, INF)),
    "loss misspelled": discrimination(loss="crossentropy"),
    "penalty negative": discrimination(l2=-0.1),
    "field misspelled": discrimination(label="signs"),
    "activation misspelled": network("SingleNeuron", activation="rely"),
    "init misspelled": network("SingleNeuron", init="xavier"),
    "init scale zero": network("SingleNeuron", init_scale=0),
    "hidden zero": network("Committee", hidden=0),
    "hidden fractional": network("TwoLayer", hidden=2.5),
    "bias misspelled": network("Committee", bias="half"),
    "bias infinite": network("Committee", bias_value=INF),
    "hidden of one neuron": network("SingleNeuron", hidden=3),
}
