"""A small gated linear network on spins: its loss from the definition, its gradient followed in
small steps.
"""

import dataclasses
import functools

import numpy as np
import scipy.integrate

import localfields as lf
from localfields.networks.gates import Directions, Redundant

from .common import ISING, P0, P1, STATES, descent


@dataclasses.dataclass(frozen=True, eq=False)
class Gated:
    """ŷ = (1/K) Σ g_k ⟨w_k, x⟩ with two fixed half-space gates, on all states of both classes;
    loss with a ½, τ = 1.
    """

    directions: np.ndarray  # (gates, sites)
    start: np.ndarray  # (K · sites,)
    copies: int = 1  # neurons behind each gate

    @classmethod
    def example(cls, redundant=False):
        """Two neurons behind random gates, or behind one and the same."""
        rng = np.random.default_rng(0)
        return cls(
            rng.normal(size=(1 if redundant else 2, 9)), rng.normal(size=18), 2 if redundant else 1
        )

    @property
    def count(self):
        return len(self.directions) * self.copies

    @functools.cached_property
    def inputs(self):
        """x̃ = g ⊗ x of every state, (states, K · sites)."""
        opened = np.repeat(STATES @ self.directions.T > 0, self.copies, axis=1)
        return (opened[:, :, None] * STATES[:, None, :]).reshape(len(STATES), -1)

    @property
    def a(self):
        return self.inputs.T @ (0.5 * (P0 + P1)[:, None] * self.inputs)

    @property
    def b(self):
        return 0.5 * P1 @ self.inputs

    def loss(self, w):
        """½E(ŷ − Y)²."""
        out = self.inputs @ w / self.count
        return 0.25 * (P0 @ out**2 + P1 @ (out - 1) ** 2)

    def integrated(self, time):
        """Fields after a time, by integrating −∇L, itself a sum over states."""

        def velocity(_, w):
            out = self.inputs @ w / self.count
            return -0.5 * (P0 * out + P1 * (out - 1)) @ self.inputs / self.count

        run = scipy.integrate.solve_ivp(
            velocity, (0, time), self.start, rtol=1e-12, atol=1e-13, method="DOP853"
        )
        return run.y[:, -1]

    # -- the library's, whose loss has no ½: its time runs twice as fast ---------------------------

    @property
    def gates(self):
        return (
            Redundant(Directions(self.directions), self.copies)
            if self.copies > 1
            else Directions(self.directions)
        )

    @functools.cached_property
    def theory(self):
        return lf.theory.gated_solution(ISING, self.gates, num_samples=None)

    def flow(self, w):
        network, fields = lf.networks.GatedLinear(self.gates), w.reshape(self.count, -1)
        return (
            0.5 * descent(lf.theory.GatedFlow(), ISING, network, weights=fields)["weights"].ravel()
        )

    @property
    def end(self):
        return self.theory.limit(self.start.reshape(self.count, -1)).ravel()

    def solution(self, time):
        return self.theory.weights(0.5 * time, self.start.reshape(self.count, -1))[0].ravel()
