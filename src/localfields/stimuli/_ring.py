"""Sums over the states of an Ising ring, by enumeration, Fourier inversion, transfer matrices.

The gated mean of a ring is f(w) = E[1(⟨w, X⟩ > 0) X] = ½E[sgn⟨w, X⟩ X]. Ties are halved, sgn 0 = 0,
which by sign symmetry is what either convention gives.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from .._spec import Number, Row
from ..errors import InputError

MOST_ENUMERATED = 20  # sites: a million states
MOST_IN_HALVES = 44  # sites: two lists of four million

# Up to here states are summed one by one: single states matter, and no window resolves them.
MOST_SUMMED = 20
TIE_TOLERANCE = 64 * np.finfo(np.float64).eps  # of ‖w‖₁: a sum that would be zero without rounding

# The window falls to e^(−18)·19 at the last frequency; it smooths sgn over WINDOW_WIDTH·‖w‖₁/(2πM).
WINDOW_WIDTH = 6.0
MOST_FREQUENCIES = 16384

# On an odd ring with J < 0 the partition function is a difference of nearly equal numbers, which
# loses e^(2|J|) in relative accuracy.
STRONGEST_FRUSTRATION = 8.0


def as_field(w: Any) -> np.ndarray:
    """A field as a float64 array with one axis."""
    return Row(hint="Give one number per site.").check("w", w)


def enumerate_states(n: int) -> np.ndarray:
    """All states of n spins, (2ⁿ, n) of ±1; the first site changes slowest and starts at +1.

    Example:
        >>> enumerate_states(2).tolist()
        [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    """
    if not 1 <= n <= MOST_ENUMERATED:
        raise InputError(
            f"States can be listed for 1 to {MOST_ENUMERATED} sites, got {n}. For larger Ising "
            "rings use `lf.stimuli.Ising.gated_mean`."
        )
    return (1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)[::-1][None, :]) & 1)).astype(np.int8)


def ising_weights(states: np.ndarray, coupling: float) -> np.ndarray:
    """Probability of each state of an Ising ring among those given."""
    energy = np.asarray(
        coupling * np.sum(states * np.roll(states, -1, axis=1), axis=1, dtype=np.float64)
    )
    weights = np.exp(energy - energy.max())
    return weights / weights.sum()


def meet_in_the_middle_response(w: Any, coupling: float) -> np.ndarray:
    """f(w) of an Ising ring, exact for any field up to 44 sites: a few seconds at 40.

    The ring is cut in two. For every state of one half, a sorted list of the other half's sums with
    cumulative weights gives E[sgn S], once for each of its 4 pairs of end spins: 2^(N/2) N
    operations.

    Args:
        w: The field, (size,).
        coupling: J.

    Returns:
        (size,).

    Example:
        >>> w, states = np.array([0.3, -0.2, 0.5, 0.1]), enumerate_states(4)
        >>> exact = 0.5 * (ising_weights(states, 0.7) * np.sign(states @ w)) @ states
        >>> bool(np.allclose(meet_in_the_middle_response(w, 0.7), exact, rtol=0, atol=1e-15))
        True
    """
    w = as_field(w)
    if not 2 <= w.size <= MOST_IN_HALVES:
        raise InputError(
            f"A ring of 2 to {MOST_IN_HALVES} sites can be cut in halves, got {w.size} sites. "
            "Use `ising_response` for larger rings."
        )
    # Weights of an equal and of an unequal pair of neighbors.
    bonds = scipy.special.expit([2 * coupling, -2 * coupling])
    cut = w.size // 2
    halves = [_half(w[:cut], bonds), _half(w[cut:], bonds)]
    tie = TIE_TOLERANCE * np.abs(w).sum()
    parts, total = zip(
        *(_facing(halves[k], halves[1 - k], bonds, tie) for k in (0, 1)), strict=True
    )
    return 0.5 * np.concatenate(parts) / total[0]


def _half(w: np.ndarray, bonds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum and weight of every state of an open chain, each (first spin, others, last spin)."""
    sums, weights = np.zeros(1), np.ones(1)
    for i, value in enumerate(w):
        sums = np.stack([sums + value, sums - value], axis=-1).ravel()
        pairs = np.array([[bonds[0], bonds[1]], [bonds[1], bonds[0]]]) if i else np.ones((1, 2))
        weights = (weights.reshape(-1, len(pairs), 1) * pairs).ravel()
    shape = (2, -1, 2) if len(w) > 1 else (2, 1, 1)
    return sums.reshape(shape), weights.reshape(shape)


def _facing(half: Any, other_half: Any, bonds: np.ndarray, tie: float) -> tuple[np.ndarray, float]:
    """Σ P sgn(S) x over this half's sites, and Σ P."""
    sums, weights = half
    # E[sgn S] of each state of this half, weighted by the other half and the two bonds between
    # them. By symmetry only states whose first spin is +1 are needed, counted twice.
    mean = np.zeros(sums.shape[1:])
    total = 0.0
    for first, last in np.ndindex(other_half[0].shape[0], other_half[0].shape[2]):
        other_sums = other_half[0][first, :, last]
        order = np.argsort(other_sums)
        other_sums = other_sums[order]
        below = np.concatenate([[0.0], np.cumsum(other_half[1][first, :, last][order])])
        # A half of one site is its own end.
        their_last = last if other_half[0].shape[2] > 1 else first
        for end in range(sums.shape[2]):
            my_end = end if sums.shape[2] > 1 else 0
            bond = bonds[first ^ my_end] * bonds[their_last]
            query = np.sort(-sums[0, :, end])
            back = np.argsort(np.argsort(-sums[0, :, end]))
            up = below[-1] - below[np.searchsorted(other_sums, query + tie, side="right")]
            down = below[np.searchsorted(other_sums, query - tie, side="left")]
            mean[:, end] += bond * (up - down)[back]
            total += 2 * bond * below[-1] * weights[0, :, end].sum()
    signed = (2 * weights[0] * mean).ravel()
    parts = [signed.sum()]
    for i in range(int(np.log2(sums.size)) - 1):
        split = signed.reshape(2**i, 2, -1).sum(axis=(0, 2))
        parts.append(split[0] - split[1])
    return np.array(parts), total


def frustrated(coupling: float, size: int) -> str:
    """Why the transfer matrices cannot resolve a ring; empty if they can."""
    if size % 2 == 0 or coupling >= -STRONGEST_FRUSTRATION:
        return ""
    return (
        f"`coupling` of an odd ring must be at least {-STRONGEST_FRUSTRATION:g}, got {coupling:g} "
        f"on {size} sites. Take an even number of sites, or `meet_in_the_middle_response`."
    )


def ising_response(w: jax.Array, coupling: Any, num_frequencies: int = 256) -> jax.Array:
    """The gated mean f(w) = E[1(⟨w, X⟩ ≥ 0) X] of an Ising ring, by Fourier inversion.

    With t_n = (n − ½)h the square wave (4/π) Σ sin(t_n S)/(2n − 1) is sgn(S) for |S| < 2π/h, so

        f_i = (2/π) Σ_n g_n/(2n − 1) Im ψ_i(t_n),    ψ_i(t) = E[X_i exp(itS)].

    Cut off after `num_frequencies` terms it needs the window g = (1 + y)e^(−y), y = ½(6n/M)², a
    kernel of fourth order, and an h a little below 2π/‖w‖₁, as an atom at |S| = ‖w‖₁ would sit on
    the wave's next jump.

    JAX can compile, vectorize and differentiate it; work and memory are O(N M). Zero for w = 0,
    unchanged by a positive factor on w; of w's own precision.

    Args:
        w: The field, (size,), one entry per site of the ring.
        coupling: J; may be traced.
        num_frequencies: M; it shapes the program.

    Returns:
        (size,).

    Example:
        >>> w = jnp.zeros(40).at[0].set(1.0)
        >>> print(np.array(2 * ising_response(w, 0.7)[:3], float).round(3))  # its correlations
        [1.    0.604 0.365]
    """
    n = np.arange(num_frequencies) + 0.5
    y = 0.5 * (WINDOW_WIDTH * n / num_frequencies) ** 2
    weights = np.exp(-y) * (1 + y) / (np.pi * n)
    room = 2 * np.pi - 6.5 * WINDOW_WIDTH / num_frequencies
    # Divided by the largest entry first: sums of entries near the end of the floating-point range
    # would overflow.
    largest = jnp.max(jnp.abs(w))
    direction = w / jnp.where(largest > 0, largest, 1)
    direction = direction / jnp.maximum(jnp.sum(jnp.abs(direction)), 1)
    angles = direction[:, None] * jnp.asarray(n * room, w.dtype)[None, :]
    return odd_moments(angles, coupling) @ jnp.asarray(weights, w.dtype)


def odd_moments(angles: jax.Array, coupling: Any) -> jax.Array:
    """Im E[X_i exp(i Σ_j θ_j X_j)] on an Ising ring, for columns θ of angles.

    In the basis where the transfer matrix is diag(1, t), t = tanh J, the site factor exp(iθX) is a
    rotation by θ whose off-diagonal entries are imaginary. A row of a product is then one complex
    number Z, and a site takes it to Z e^(iθ) with the imaginary part scaled by t: the same step
    serves prefixes and suffixes.

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

    def forward(z: jax.Array, turn: jax.Array) -> tuple[jax.Array, jax.Array]:
        return scaled(z * turn[None, :]), z

    def backward(z: jax.Array, site: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        turn, before = site
        turned = z * turn[None, :]
        # Combined here rather than stored: half the memory, which limits the speed of large rings.
        return scaled(turned), (before[0] * turned[0] - before[1] * turned[1]).imag

    ones, zeros = jnp.ones(columns, angles.dtype), jnp.zeros(columns, angles.dtype)
    identity = jax.lax.complex(jnp.stack([ones, zeros]), jnp.stack([zeros, -ones]))  # its two rows
    _, before = jax.lax.scan(forward, identity, turns)
    _, traces = jax.lax.scan(backward, scaled(identity), (turns, before), reverse=True)
    return traces / partition(coupling, size)


def partition(coupling: jax.Array, size: int) -> jax.Array:
    """1 + t^N with all its digits, also where t^N is close to −1."""
    power = size * jnp.log1p(-2 * jax.nn.sigmoid(-2 * jnp.abs(coupling)))  # N log|t|
    if size % 2 == 0:
        return 1 + jnp.exp(power)
    return jnp.where(coupling < 0, -jnp.expm1(power), 1 + jnp.exp(power))


compiled_response = functools.partial(jax.jit, static_argnums=2)(ising_response)


def adaptive_response(w: Any, coupling: float, tol: float = 1e-9) -> tuple[np.ndarray, float, int]:
    """f(w) of an Ising ring to a wanted accuracy: more frequencies until the answer stands still.

    Rings of up to 20 sites are summed over their states: there single states near S = 0 matter, and
    the Fourier sum converges slowly.

    Args:
        w: The field, (size,).
        coupling: J.
        tol: Largest change of an entry, when the number of frequencies doubles, to stop at.

    Returns:
        The response (size,), its error as estimated by the last change (above `tol` when even 16384
        frequencies are not enough), and the number of frequencies (0: summed over states).

    Example:
        >>> f, error, frequencies = adaptive_response(np.eye(40)[3], 0.7)
        >>> frequencies, bool(abs(f[3] - 0.5) < 1e-9)
        (128, True)
    """
    w, coupling = as_field(w), float(Number().check("coupling", coupling))
    tol = float(Number(low=0).check("tol", tol))
    if w.size <= MOST_SUMMED:
        return meet_in_the_middle_response(w, coupling), 0.0, 0
    if reason := frustrated(coupling, w.size):
        raise InputError(reason)
    with jax.enable_x64(True):
        num, error = 64, math.inf
        response = np.asarray(compiled_response(w, coupling, num))
        while error >= tol and num < MOST_FREQUENCIES:
            num *= 2
            last, response = response, np.asarray(compiled_response(w, coupling, num))
            error = float(np.abs(response - last).max())
    return response, error, num


def ising_kurtosis(fields: np.ndarray, coupling: float) -> np.ndarray:
    """Excess kurtosis of ⟨w, X⟩ on an Ising ring, from E e^{t⟨w, X⟩} to t⁴ by transfer matrices.

    Args:
        fields: (…, size).
        coupling: J.

    Returns:
        (…,); nan where ⟨w, X⟩ does not vary.

    Example:
        >>> ising_kurtosis(np.array([[1.0, 0.0, 0.0, 0.0]]), 0.7).round(12)  # a single ±1 variable
        array([-2.])
    """
    rows = fields.reshape(-1, fields.shape[-1])
    # Weights of an equal and of an unequal pair of neighbors.
    bonds = scipy.special.expit([2 * coupling, -2 * coupling])
    matrix = np.array([[bonds[0], bonds[1]], [bonds[1], bonds[0]]])
    # Taylor coefficients of e^{tw}, (degree, field, size), and the signs of those of e^{−tw}.
    powers = np.stack([rows**d / math.factorial(d) for d in range(5)])
    signs = np.array([[1.0, (-1.0) ** d] for d in range(5)])
    # The polynomial of all sites so far for either value of the first and of the last spin:
    # (degree, first spin, last spin, field).
    state = np.zeros((5, 2, 2, len(rows)))
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
    # A variance that is rounding of ‖w‖₁² is none: its fourth moment is rounding, too.
    varies = second > TIE_TOLERANCE * np.abs(rows).sum(axis=1) ** 2
    kurtosis = np.where(varies, fourth, np.nan) / np.where(varies, second, 1.0) ** 2 - 3
    return kurtosis.reshape(fields.shape[:-1])
