"""The exact response of a neuron to an Ising ring: Fourier inversion, with transfer matrices around the ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Count, declare
from ..._types import Whole
from ...errors import show
from ...stimuli import Ising, Stimulus
from ...stimuli._ring import (
    MOST_FREQUENCIES,
    MOST_SUMMED,
    as_field,
    enumerate_states,
    frustrated,
    ising_response,
    odd_moments,
)
from ..base import EXACT, Coverage, NeuronTheory, Response, not_covered, require, swept

LEAST_FREQUENCIES, COARSE_FREQUENCIES = 16, 64


class ExactIsing(NeuronTheory):
    """The population gradient of one ReLU neuron on Ising rings, by Fourier inversion: nothing is approximated but sgn.

    sgn(S) is replaced by a sum of `frequencies` sines, smooth over a width of about ‖w‖₁/`frequencies`. The response
    is exact to 1e-9 where no state has a preactivation that small, as for a bump. For generic fields the error at 256
    frequencies is about 1e-4 on 40 sites, where single states are felt, and 1e-7 on 100; beyond, where S is nearly
    normal, it is a fraction ⅜(ε/σ)⁴ with ε = ‖w‖₁/M and σ the deviation of S: 2e-6 on 1000 sites.
    `adaptive_response` says it for a given field. Rings of up to 20 sites are summed over their states, exactly.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(lf.stimuli.Ising(40, coupling=0.3), lf.stimuli.Ising(40, coupling=0.7))
        >>> flow = ExactIsing().flow(task, lf.networks.SingleNeuron())
    """

    frequencies: Whole = declare(
        Count(
            LEAST_FREQUENCIES,
            MOST_FREQUENCIES,
            "256 is right for 40 sites or more; cost grows in proportion.",
        ),
        default=256,
        symbol="M",
        help="frequencies of the Fourier inversion",
    )

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Ising rings."""
        if not isinstance(stimulus, Ising):
            return not_covered(
                f"Every stimulus for ExactIsing must be an Ising ring, got {show(stimulus)}. "
                "Use a theory that covers this stimulus, such as `EffectiveFlow`."
            )
        reason = swept("ExactIsing", stimulus) or frustrated(stimulus.coupling, stimulus.size)
        return not_covered(reason) if reason else EXACT

    def coarse(self) -> ExactIsing:
        """With a quarter of the frequencies: the same end of a flow, four times faster."""
        return self.replace(frequencies=COARSE_FREQUENCIES)

    def response(self, stimulus: Stimulus) -> Response:
        """The response of an Ising ring."""
        self.covers_class(stimulus).require()
        assert isinstance(stimulus, Ising)
        with jax.enable_x64(True):
            coupling = jnp.asarray(stimulus.coupling)
            if stimulus.size <= MOST_SUMMED:
                return SummedResponse(coupling)
            return IsingResponse(coupling, self.frequencies)


class SummedResponse(Response):
    """f(w) of a small Ising ring, summed over its states: those of one half in rows, of the other in columns.

    A state and its mirror image add the same, so that the first spin is +1 throughout. The bonds between the halves
    have the weights exp(Jxy) = cosh J (1 + xy tanh J).
    """

    coupling: jax.Array

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,)."""
        coupling, half = self.coupling.astype(w.dtype), w.size // 2
        states = enumerate_states(half)[: 2 ** (half - 1)], enumerate_states(w.size - half)
        rows, columns = (jnp.asarray(x, w.dtype) for x in states)
        inside = [coupling * jnp.sum(x[:, 1:] * x[:, :-1], axis=1) for x in (rows, columns)]
        one, other = (jnp.exp(energy - jnp.max(energy)) for energy in inside)
        t = jnp.tanh(coupling)
        other = other * (1 + t * columns[:, -1])
        weight = one[:, None] * other[None, :] * (1 + t * rows[:, -1:] * columns[None, :, 0])
        pull = weight * jnp.sign((rows @ w[:half])[:, None] + (columns @ w[half:])[None, :])
        return jnp.concatenate([jnp.sum(pull, axis=1) @ rows, jnp.sum(pull, axis=0) @ columns]) / (
            2 * jnp.sum(weight)
        )


class IsingResponse(Response):
    """f(w) of one Ising ring."""

    coupling: jax.Array
    frequencies: int = eqx.field(static=True, default=256)

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,)."""
        return ising_response(w, self.coupling, self.frequencies)


def smooth_response(
    h: Callable[[Any], Any], w: Any, coupling: float, bias: float = 0.0, num_frequencies: int = 64
) -> np.ndarray:
    """E[h(⟨w, X⟩ + b) X] on an Ising ring for a smooth h that vanishes far out, such as the slope of an activation.

    A Fourier series of h on [−L, L], L = ‖w‖₁ + |b| + 9, which converges as fast as h is smooth: for σ' and σσ' with
    σ(x) = erf(x/√2) the error is about 1e-10 at 32 frequencies and rounding at 64.

    Args:
        h: A function of an array, small beyond ±9.
        w: The field, (size,).
        coupling: J.
        bias: b.
        num_frequencies: Terms of the series.

    Returns:
        (size,).

    Example:
        >>> slope = lambda s: np.exp(-(s**2) / 2)
        >>> smooth_response(slope, [1.0, 0.0, 0.0], 0.7, bias=0.5).round(4).tolist()  # first, half of h(1.5) − h(0.5)
        [-0.2789, -0.2215, -0.2215]
    """
    w, num = as_field(w), num_frequencies
    require(frustrated(float(coupling), w.size))
    half = np.abs(w).sum() + abs(bias) + 9.0
    points = half * (np.arange(2 * num) / num - 1)
    n = np.arange(1, num)
    series = (-1.0) ** n * np.fft.rfft(np.asarray(h(points + bias), np.float64))[1:num] / (2 * num)
    with jax.enable_x64(True):
        moments = np.asarray(
            odd_moments(jnp.asarray(w[:, None] * (np.pi * n / half)[None, :]), coupling)
        )
    return -2 * moments @ series.imag
