"""The exact response of a neuron to an Ising ring: Fourier inversion, with transfer matrices around the ring."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Count, Number, declare
from ..._types import Whole
from ...errors import show
from ...stimuli import Ising, Stimulus
from ..base import EXACT, Coverage, NeuronTheory, Response, not_covered, require, swept
from .hypercube import as_field, enumerate_states, meet_in_the_middle_response

# The window falls to e^(−18)·19 at the last frequency, and smooths sgn over a width WINDOW·‖w‖₁/(2πM).
WINDOW = 6.0
LEAST_FREQUENCIES, COARSE_FREQUENCIES, MOST_FREQUENCIES = 16, 64, 16384
MOST_SUMMED = 20  # sites whose states are summed one by one: there single states matter, and no window resolves them

# On an odd ring with J < 0 the partition function is a difference of nearly equal numbers; digits lost: e^(2|J|).
STRONGEST_FRUSTRATION = 8.0


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


def frustrated(coupling: float, size: int) -> str:
    """Why the transfer matrices cannot resolve a ring; empty if they can."""
    if size % 2 == 0 or coupling >= -STRONGEST_FRUSTRATION:
        return ""
    return (
        f"`coupling` of an odd ring must be at least {-STRONGEST_FRUSTRATION:g}, got {coupling:g} on "
        f"{size} sites. Take an even number of sites, or `meet_in_the_middle_response`."
    )


def ising_response(w: jax.Array, coupling: Any, num_frequencies: int = 256) -> jax.Array:
    """Mean of what a gate lets through, f(w) = E[1(⟨w, X⟩ ≥ 0) X], for an Ising ring.

    With t_n = (n − ½)h the square wave (4/π) Σ sin(t_n S)/(2n − 1) is sgn(S) without error for |S| < 2π/h, so

        f_i = (2/π) Σ_n g_n/(2n − 1) Im ψ_i(t_n),    ψ_i(t) = E[X_i exp(itS)].

    Cut off after `num_frequencies` terms it needs the window g = (1 + y)e^(−y), y = ½(6n/M)², a kernel of fourth order,
    and an h a little below 2π/‖w‖₁, as an atom at |S| = ‖w‖₁ would sit on the wave's next jump.

    JAX can compile, vectorize and differentiate it; work and memory are O(N M). Zero for w = 0, unchanged by a
    positive factor on w; of w's own precision.

    Args:
        w: The field, (size,), one entry a site of the ring.
        coupling: J; may be traced.
        num_frequencies: M; it shapes the program.

    Returns:
        (size,).

    Example:
        >>> w = jnp.zeros(40).at[0].set(1.0)
        >>> print(np.array(2 * ising_response(w, 0.7)[:3], float).round(3))  # one site: its correlations
        [1.    0.604 0.365]
    """
    n = np.arange(num_frequencies) + 0.5
    y = 0.5 * (WINDOW * n / num_frequencies) ** 2
    weights = np.exp(-y) * (1 + y) / (np.pi * n)
    room = 2 * np.pi - 6.5 * WINDOW / num_frequencies
    # Divided by the largest entry first: the sum of entries near the end of the floating-point range would leave it.
    largest = jnp.max(jnp.abs(w))
    direction = w / jnp.where(largest > 0, largest, 1)
    direction = direction / jnp.maximum(jnp.sum(jnp.abs(direction)), 1)
    angles = direction[:, None] * jnp.asarray(n * room, w.dtype)[None, :]
    return odd_moments(angles, coupling) @ jnp.asarray(weights, w.dtype)


def odd_moments(angles: jax.Array, coupling: Any) -> jax.Array:
    """Im E[X_i exp(i Σ_j θ_j X_j)] on an Ising ring, for columns θ of angles.

    In the basis where the transfer matrix is diag(1, t), t = tanh J, the site factor exp(iθX) is a rotation by θ whose
    off-diagonal entries are imaginary. A row of a product is then one complex number Z, and a site takes it to
    Z e^(iθ) with the imaginary part scaled by t: the same step serves prefixes and suffixes.

    Args:
        angles: (size, columns).
        coupling: J.

    Returns:
        (size, columns).
    """
    size, columns = angles.shape
    coupling = jnp.asarray(coupling, angles.dtype)
    t = jnp.tanh(coupling)
    turns = jax.lax.complex(jnp.cos(angles), jnp.sin(angles))

    def scaled(z: jax.Array) -> jax.Array:
        return jax.lax.complex(z.real, t * z.imag)

    def ahead(z: jax.Array, turn: jax.Array) -> tuple[jax.Array, jax.Array]:
        return scaled(z * turn[None, :]), z

    def back(z: jax.Array, site: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        turn, before = site
        turned = z * turn[None, :]
        # Combined here rather than stored: half the memory, which is what limits the speed of large rings.
        return scaled(turned), (before[0] * turned[0] - before[1] * turned[1]).imag

    one, zero = jnp.ones(columns, angles.dtype), jnp.zeros(columns, angles.dtype)
    identity = jax.lax.complex(jnp.stack([one, zero]), jnp.stack([zero, -one]))  # its two rows
    _, before = jax.lax.scan(ahead, identity, turns)
    _, traces = jax.lax.scan(back, scaled(identity), (turns, before), reverse=True)
    return traces / partition(coupling, size)


def partition(coupling: jax.Array, size: int) -> jax.Array:
    """1 + t^N with all its digits, also where t^N is close to −1."""
    power = size * jnp.log1p(-2 * jax.nn.sigmoid(-2 * jnp.abs(coupling)))  # N log|t|
    if size % 2 == 0:
        return 1 + jnp.exp(power)
    return jnp.where(coupling < 0, -jnp.expm1(power), 1 + jnp.exp(power))


@functools.partial(jax.jit, static_argnums=2)
def _compiled(w: jax.Array, coupling: Any, num_frequencies: int) -> jax.Array:
    return ising_response(w, coupling, num_frequencies)


def adaptive_response(w: Any, coupling: float, tol: float = 1e-9) -> tuple[np.ndarray, float, int]:
    """f(w) of an Ising ring to a wanted accuracy: more frequencies until the answer stands still.

    Rings of up to 20 sites are summed over their states: there single states near S = 0 matter, and the Fourier sum
    converges slowly.

    Args:
        w: The field, (size,).
        coupling: J.
        tol: Largest change of an entry, when the number of frequencies doubles, to stop at.

    Returns:
        The response (size,), its error as estimated by the last change (above `tol` when even 16384 frequencies are
        not enough), and the number of frequencies (0: summed over states).

    Example:
        >>> f, error, frequencies = adaptive_response(np.eye(40)[3], 0.7)
        >>> frequencies, bool(abs(f[3] - 0.5) < 1e-9)
        (128, True)
    """
    w, coupling = as_field(w), float(Number().check("coupling", coupling))
    tol = float(Number(low=0).check("tol", tol))
    if w.size <= MOST_SUMMED:
        return meet_in_the_middle_response(w, coupling), 0.0, 0
    require(frustrated(coupling, w.size))
    with jax.enable_x64(True):
        num, error = 64, math.inf
        found = np.asarray(_compiled(w, coupling, num))
        while error >= tol and num < MOST_FREQUENCIES:
            num *= 2
            last, found = found, np.asarray(_compiled(w, coupling, num))
            error = float(np.abs(found - last).max())
    return found, error, num


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
