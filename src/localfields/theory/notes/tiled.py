"""Populations of neurons that share one field up to shift and sign, and one bias: a convolution (working note 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._spec import Row
from ...errors import Said, refuse, unknown
from ...networks.base import ACTIVATIONS

# What saturating activations tend to on either side.
LIMITS = {
    "erf": (-1.0, 1.0),
    "erf-unscaled": (-1.0, 1.0),
    "tanh": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
}
FORMS = ("whole", "folded", "printed")


def limits(name: str) -> tuple[float, float]:
    """What an activation tends to on either side, or refuse one that does not saturate."""
    if name not in LIMITS:
        unknown("The activation of a tiled model", name, LIMITS)
    return LIMITS[name]


def folded_error(bias: float, activation: str = "erf") -> float:
    """The most by which ½[σ(z + b) + σ(−z + b)] and its folded form can differ, which is at z = 0.

    Example:
        >>> round(folded_error(-2.0) / 2, 3)  # of one of two populations
        0.011
    """
    low, high = limits(activation)
    at = float(_applied(activation, np.array([float(bias)]))[0])
    return 0.5 * (at - low if bias <= 0 else high - at)


def tiled_output(
    x: Any, populations: Sequence[tuple[Any, float]], activation: str = "erf", form: str = "whole"
) -> np.ndarray:
    """Output of populations of neurons that share a field in every shift and sign: note 3's convolutional model.

    With z(τ) = ⟨w shifted by τ, x⟩ a population gives the mean over τ of ½[σ(z + b) + σ(−z + b)], and the output is the
    mean over populations (¼ of four integrals for two, the note's eq. 4). Where a bias is well below zero one of the
    two terms is always near σ(−∞), and the pair *folds* to ½[σ(|z| + b) + σ(−∞)]; well above zero, to
    ½[σ(b − |z|) + σ(∞)]. The note's eq. 5, σ(|z| + b), drops the constant and the ½.

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
        >>> found = [tiled_output(x, pair, form=form) for form in ("whole", "folded", "printed")]
        >>> bool(np.abs(found[1] - found[0]).max() < 0.023), bool(np.abs(found[2] - found[0]).max() > 0.1)
        (True, True)
    """
    if form not in FORMS:
        unknown("`form`", form, FORMS)
    low, high = limits(activation)
    x = Row(axes=None, hint="Give stimuli, (num, *shape).").check("x", x)
    axes = tuple(range(1, x.ndim))
    if not axes or not populations:
        refuse(
            "The tiled model",
            Said(f"x of shape {x.shape}"),
            "given (num, *shape) and a population",
            "Add some.",
        )
    total = np.zeros(len(x))
    for field, bias in populations:
        w = Row(axes=None, hint="Give one number a site.").check("field", field)
        if w.shape != x.shape[1:]:
            refuse(
                "A field",
                Said(f"shape {w.shape}"),
                f"of the lattice's shape {x.shape[1:]}",
                "Give one a site.",
            )
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
