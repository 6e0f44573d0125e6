"""A small gated linear network on finite data: its loss from the definition, its gradient followed in small steps."""

import dataclasses
import functools

import numpy as np
import scipy.integrate
import scipy.linalg


@dataclasses.dataclass(frozen=True, eq=False)
class Gated:
    """ŷ = (1/K) Σ g_k ⟨w_k, x⟩ with fixed gates, on a list of inputs, labels and gates; τ = 1."""

    x: np.ndarray  # (inputs, sites)
    y: np.ndarray  # (inputs,)
    gates: np.ndarray  # (inputs, K)
    start: np.ndarray  # (K · sites,)

    @classmethod
    def example(cls, redundant=False):
        """60 inputs of three sites, half of them of label 1 and larger; two random gates, or one twice."""
        rng = np.random.default_rng(0)
        y = np.repeat([0.0, 1.0], 30)
        x = rng.normal(size=(60, 3)) * (0.7 + y[:, None]) + y[:, None]
        gates = (rng.random((60, 2)) < 0.6).astype(float)
        gates[:, 1] = gates[:, 0] if redundant else gates[:, 1]
        return cls(x, y, gates, rng.normal(size=6))

    @property
    def count(self):
        return self.gates.shape[1]

    @functools.cached_property
    def inputs(self):
        """x̃ = g ⊗ x, (inputs, K · sites)."""
        return (self.gates[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)

    @property
    def a(self):
        return self.inputs.T @ self.inputs / len(self.x)

    @property
    def b(self):
        return self.inputs.T @ self.y / len(self.x)

    def loss(self, w):
        """½E(ŷ − Y)², from the definition."""
        out = sum(g * (self.x @ wk) for g, wk in zip(self.gates.T, w.reshape(self.count, -1), strict=True)) / self.count
        return 0.5 * np.mean((out - self.y) ** 2)

    def integrated(self, time):
        """Fields after a time, by integrating −∇L, itself taken input by input."""

        def velocity(_, w):
            error = self.inputs @ w / self.count - self.y
            return -(error @ self.inputs) / (len(self.x) * self.count)

        run = scipy.integrate.solve_ivp(velocity, (0, time), self.start, rtol=1e-12, atol=1e-13, method="DOP853")
        return run.y[:, -1]

    # -- the right forms ----------------------------------------------------------------------------------------------

    def flow(self, w):
        return (self.b - self.a @ w / self.count) / self.count

    @property
    def end(self):
        return self.count * np.linalg.solve(self.a, self.b)

    def solution(self, time):
        return self.end + scipy.linalg.expm(-self.a * time / self.count**2) @ (self.start - self.end)

    def redundant_solution(self, time):
        """For two neurons with one gate: their sum relaxes twice as fast, their difference stays."""
        sites = self.x.shape[1]
        a, b = self.a[:sites, :sites], self.b[:sites]
        first, second = self.start[:sites], self.start[sites:]
        end = self.count * np.linalg.solve(a, b)
        total = end + scipy.linalg.expm(-2 * a * time / self.count**2) @ (first + second - end)
        return np.concatenate([total + first - second, total - first + second]) / 2
