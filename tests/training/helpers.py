"""What the tests of training share: scores, runs that stand still, and training written out by
hand.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import localfields as lf
from localfields._prng import member_keys
from localfields.training import engine
from localfields.training.estimators import class_counts, sampled

SIGMAS = 5.0

# A learning rate so small that weights stay where they start, and their differences are gradients
# to seven digits.
STILL = 1e-9


def z_scores(values, expected):
    """Standard errors between the mean over the first axis and what is expected; the error is
    measured.
    """
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (values.mean(axis=0) - expected) / error


def worst(values, expected):
    """The largest of the z scores: under the null below five."""
    return np.abs(z_scores(values, expected)).max()


def ising(shape=(8,), couplings=(0.3, 0.7), **values):
    """A small task."""
    return lf.Discrimination(*[lf.stimuli.Ising(shape, coupling=j) for j in couplings], **values)


def gaussians(shape=(8,), **values):
    """A small task that compiles quickly."""
    return lf.Discrimination(*[lf.stimuli.Gaussian(shape, xi=xi) for xi in (0.6, 1.1)], **values)


def run(task=None, network=None, **changes):
    """A small run: one neuron on Gaussian data, three members, ten draws a step.

    Most of what a test of training takes is compiling. Runs that differ only in numbers, or in what
    is recorded, share a program.
    """
    record = {
        name: changes.pop(name, usual)
        for name, usual in (("every", 10), ("quantities", ("weights",)), ("evaluate", 20))
    }
    settings = {"steps": 50, "batch": 10, "members": 3, "learning_rate": 0.05}
    settings |= {"record": lf.Record(**record)} | changes
    return lf.train(
        task or gaussians(), network or lf.networks.SingleNeuron(init_scale=0.1), **settings
    )


def gradients_on_the_spot(task, network, **changes):
    """The gradients of many steps at one and the same point, each (member, step, …), and the run
    they are from.
    """
    standing = run(task, network, learning_rate=STILL, every=1, **changes)
    parameters = {
        name: standing.series[name] for name in engine.PARAMETERS if name in standing.series
    }
    return {name: -np.diff(values, axis=1) / STILL for name, values in parameters.items()}, standing


@functools.partial(jax.jit, static_argnames="counts")
def _gradient(task, network, params, key, counts):
    return sampled(task, network, None, params, key, counts)[1]


def trained_by_hand(task, network, *, seed, member, steps, batch, change):
    """Weights after every step of one member, from the same draws, updated by `change(gradient,
    params, step)`.
    """
    params = network.initial(member_keys(seed, member + 1, 1)[member], task.shape, task.outputs)
    key = member_keys(seed, member + 1, 0)[member]
    found = [params["weights"]]
    for step in range(steps):
        gradient = _gradient(
            task, network, params, jax.random.fold_in(key, step), class_counts(task, batch)
        )
        params = jax.tree.map(jnp.add, params, change(gradient, params, step))
        found.append(params["weights"])
    return np.stack(found)


def second_moments(stimulus):
    """Mean vector and E[x xᵀ]."""
    mean = np.full(stimulus.size, stimulus.mean())
    return mean, lf.lattice.matrix(stimulus.covariance()) + np.outer(mean, mean)
