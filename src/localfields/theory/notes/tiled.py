"""Populations of neurons that share one field up to shift and sign: a convolution (note 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Row
from ...errors import InputError, unknown_name
from ...networks.base import ACTIVATIONS

# Limits of saturating activations on either side.
LIMITS = {
    "erf": (-1.0, 1.0),
    "erf-unscaled": (-1.0, 1.0),
    "tanh": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
}
TILED_FORMS = ("whole", "folded", "printed")


def limits(name: str) -> tuple[float, float]:
    """The limits of an activation on either side."""
    if name not in LIMITS:
        raise unknown_name("saturating activation", name, LIMITS)
    return LIMITS[name]


def tiled_output(
    x: Any, populations: Sequence[tuple[Any, float]], activation: str = "erf", form: str = "whole"
) -> np.ndarray:
    """Output of populations of neurons that share a field in every shift and sign (note 3).

    With z(τ) = ⟨w shifted by τ, x⟩ a population gives the mean over τ of ½[σ(z + b) + σ(−z + b)],
    and the output is the mean over populations (the note's eq. 4). If a bias is well below zero one
    of the two terms is always near σ(−∞), and the pair *folds* to ½[σ(|z| + b) + σ(−∞)]; well above
    zero, to ½[σ(b − |z|) + σ(∞)]. The note's eq. 5, σ(|z| + b), drops the constant and the ½.

    Args:
        x: Stimuli, (num, *shape).
        populations: A field of the lattice's shape and a bias for each.
        activation: erf, erf-unscaled, tanh or sigmoid.
        form: `whole`, `folded`, or `printed` for eq. 5 as it stands.

    Returns:
        (num,).

    Example:
        >>> x = np.random.default_rng(0).normal(size=(4, 12))
        >>> pair = [(3 * np.eye(12)[0], -2.0), (3 * np.cos(np.pi * np.arange(12)), 2.0)]
        >>> exact, folded = (tiled_output(x, pair, form=form) for form in ("whole", "folded"))
        >>> bool(np.abs(folded - exact).max() < 0.023)
        True
    """
    if form not in TILED_FORMS:
        raise unknown_name("form", form, TILED_FORMS)
    low, high = limits(activation)
    x = Row(axes=None, hint="Give stimuli, (num, *shape).").check("x", x)
    axes = tuple(range(1, x.ndim))
    if not axes or not populations:
        raise InputError(
            "tiled_output needs stimuli of shape (num, *shape) and at least one population, got "
            f"shape {x.shape} and {len(populations)} populations."
        )
    total = np.zeros(len(x))
    for field, bias in populations:
        w = Row(axes=None, hint="Give one number per site.").check("field", field)
        if w.shape != x.shape[1:]:
            raise InputError(f"A field must have the lattice's shape {x.shape[1:]}, got {w.shape}.")
        # All shifts at once: a circular correlation.
        z = np.fft.ifftn(np.fft.fftn(x, axes=axes) * np.fft.fftn(w).conj(), axes=axes).real
        if form == "whole":
            pair = 0.5 * (_applied(activation, z + bias) + _applied(activation, bias - z))
        elif form == "printed":
            pair = _applied(activation, np.abs(z) + bias)
        elif bias <= 0:
            pair = 0.5 * (_applied(activation, np.abs(z) + bias) + low)
        else:
            pair = 0.5 * (_applied(activation, bias - np.abs(z)) + high)
        total += pair.mean(axis=axes)
    return total / len(populations)


def _applied(activation: str, h: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(ACTIVATIONS[activation](jnp.asarray(h)))
