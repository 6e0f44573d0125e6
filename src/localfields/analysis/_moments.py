"""Fourth moments of preactivations that need no draws."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from ..stimuli import DenseGaussian, Gaussian, Ising, Stimulus


def exact_kurtosis(stimulus: Stimulus, fields: np.ndarray) -> np.ndarray | None:
    """Excess kurtosis of ⟨w, X⟩ for fields (…, size), (…,), where it is known without draws; else None."""
    if isinstance(stimulus, Ising):
        return ising_kurtosis(fields, float(stimulus.coupling))
    if isinstance(stimulus, (Gaussian, DenseGaussian)):
        return np.zeros(fields.shape[:-1])
    law = stimulus.marginal()
    if (
        stimulus.elliptical and law is not None
    ):  # every projection has the law of a coordinate, up to scale
        return np.full(fields.shape[:-1], float(law.excess_kurtosis))
    if law is not None and math.isinf(law.kurtosis):
        return np.full(fields.shape[:-1], np.inf)
    return None


def ising_kurtosis(fields: np.ndarray, coupling: float) -> np.ndarray:
    """Excess kurtosis of ⟨w, X⟩ on an Ising ring, for fields (…, size): E e^{t⟨w, X⟩} to t⁴ by transfer matrices.

    A pair of spins carries the polynomial of everything between them, for either value of the first and the last.

    Example:
        >>> ising_kurtosis(np.array([[1.0, 0.0, 0.0, 0.0]]), 0.7).round(12)  # a single ±1 variable
        array([-2.])
    """
    rows = fields.reshape(-1, fields.shape[-1])
    bonds = scipy.special.expit(
        [2 * coupling, -2 * coupling]
    )  # weight of an equal and of an unequal pair
    matrix = np.array([[bonds[0], bonds[1]], [bonds[1], bonds[0]]])
    powers = np.stack(
        [rows**d / math.factorial(d) for d in range(5)]
    )  # of e^{tw}, (degree, field, size)
    signs = np.array([[1.0, (-1.0) ** d] for d in range(5)])  # of e^{−tw}
    state = np.zeros((5, 2, 2, len(rows)))  # degree, first spin, last spin, field
    for spin in (0, 1):
        state[:, spin, spin] = signs[:, spin, None] * powers[:, :, 0]
    for site in range(1, rows.shape[1]):
        moved = np.einsum("dabf,bc->dacf", state, matrix)
        factor = signs[:, :, None] * powers[:, None, :, site]  # degree, spin, field
        state = np.stack(
            [sum(moved[d - e] * factor[e][None] for e in range(d + 1)) for d in range(5)]
        )
    totals = np.einsum("dabf,ba->df", state, matrix)
    second, fourth = 2 * totals[2] / totals[0], 24 * totals[4] / totals[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (fourth / second**2 - 3).reshape(fields.shape[:-1])
