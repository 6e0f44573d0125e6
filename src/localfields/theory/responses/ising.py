"""The exact response of a neuron to an Ising ring, by Fourier inversion with transfer matrices."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._spec import Count, declare
from ..._types import Whole
from ...errors import show
from ...stimuli import Ising, Stimulus
from ...stimuli._ring import (
    MOST_FREQUENCIES,
    MOST_SUMMED,
    enumerate_states,
    frustrated,
    ising_response,
)
from ..base import EXACT, Coverage, NeuronTheory, Response, not_covered, not_single

COARSE_FREQUENCIES = 64  # a quarter of the default ends in the same kind of field


class ExactIsing(NeuronTheory):
    """One ReLU neuron on Ising rings, by Fourier inversion: only sgn is approximated.

    sgn(S) is replaced by a sum of `frequencies` sines, smooth over a width of about
    ‖w‖₁/`frequencies`. The response is exact to 1e-9 if no state has a preactivation that small, as
    for a bump. For generic fields the error at 256 frequencies is about 1e-4 on 40 sites, where
    single states matter, and 1e-7 on 100; beyond, where S is nearly normal, it is a fraction
    ⅜(ε/σ)⁴ with ε = ‖w‖₁/M and σ the standard deviation of S: 2e-6 on 1000 sites. Rings of up to 20
    sites are summed over their states, exactly.

    Example:
        >>> import localfields as lf
        >>> task = lf.Discrimination(*(lf.stimuli.Ising(40, coupling=j) for j in (0.3, 0.7)))
        >>> flow = ExactIsing().flow(task, lf.networks.SingleNeuron())
    """

    frequencies: Whole = declare(
        Count(16, MOST_FREQUENCIES, "256 is right for 40 sites or more; cost grows in proportion."),
        default=256,
        symbol="M",
        help="frequencies of the Fourier inversion",
    )

    def covers_class(self, stimulus: Stimulus) -> Coverage:
        """Ising rings."""
        if not isinstance(stimulus, Ising):
            return not_covered(
                f"ExactIsing covers Ising rings only, got {show(stimulus)}. "
                "Use a theory that covers this stimulus, such as `EffectiveFlow`."
            )
        reason = not_single("ExactIsing", stimulus) or frustrated(stimulus.coupling, stimulus.size)
        return not_covered(reason) if reason else EXACT

    def coarse(self) -> ExactIsing:
        """With a quarter of the frequencies, four times faster."""
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
    """f(w) of a small Ising ring, summed over the states of its two halves."""

    coupling: jax.Array

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,)."""
        # A state and its mirror image contribute the same, so that the first spin is +1 throughout.
        # The bonds between the halves have the weights exp(Jxy) = cosh J (1 + xy tanh J).
        coupling, half = self.coupling.astype(w.dtype), w.size // 2
        states = enumerate_states(half)[: 2 ** (half - 1)], enumerate_states(w.size - half)
        rows, columns = (jnp.asarray(x, w.dtype) for x in states)
        inside = [coupling * jnp.sum(x[:, 1:] * x[:, :-1], axis=1) for x in (rows, columns)]
        # Less the largest, which cancels in the mean: strong couplings would overflow.
        row, column = (jnp.exp(energy - jnp.max(energy)) for energy in inside)
        t = jnp.tanh(coupling)
        column = column * (1 + t * columns[:, -1])
        weight = row[:, None] * column[None, :] * (1 + t * rows[:, -1:] * columns[None, :, 0])
        pull = weight * jnp.sign((rows @ w[:half])[:, None] + (columns @ w[half:])[None, :])
        means = jnp.concatenate([jnp.sum(pull, axis=1) @ rows, jnp.sum(pull, axis=0) @ columns])
        return means / (2 * jnp.sum(weight))


class IsingResponse(Response):
    """f(w) of one Ising ring by Fourier inversion."""

    coupling: jax.Array
    frequencies: int = eqx.field(static=True, default=256)

    def __call__(self, w: jax.Array) -> jax.Array:
        """The response, (size,)."""
        return ising_response(w, self.coupling, self.frequencies)
