"""Stored results with other fields put in, to see whether claims follow from them."""

import dataclasses

import numpy as np

from localfields.experiments import run_or_load
from localfields.figures.base import Results


def results_of(figure, store, scale="tiny"):
    """Run or load what a figure needs."""
    return Results(
        scale,
        {
            name: run_or_load(experiment, store)
            for name, experiment in figure.experiments(scale).items()
        },
    )


def claims_by_id(figure, results):
    """The rows that a figure adds to the ledger, by their ids."""
    return {claim.id: claim for claim in figure.claims(results)}


def with_fields(results, name, fields):
    """The same with one run whose fields, (member, site) or (member, time, site), are others."""
    run = results[name]
    fields = np.asarray(fields, np.float32)
    if fields.ndim == 2:
        fields = np.repeat(fields[:, None], len(run.times), axis=1)
    series = {"weights": fields[:, :, None]}
    other = dataclasses.replace(
        run, series=series, initial=fields[:, :1], final=fields[:, -1:], events={}
    )
    return Results(results.scale, {**results.runs, name: other})


def with_neurons(results, name, fields):
    """The same with one run in which every member has these fields, (neuron, site)."""
    run = results[name]
    fields = np.broadcast_to(fields.astype(np.float32), run.weights.shape)
    other = dataclasses.replace(run, series={**run.series, "weights": fields}, final=fields[:, -1])
    return Results(results.scale, {**results.runs, name: other})


def bumps(sites, size):
    """One site a member."""
    return np.eye(size)[np.asarray(sites)]


def waves(members, size):
    """A sinusoid a member."""
    return np.cos(2 * np.pi * (np.arange(size) / size + np.arange(members)[:, None] / 7))
