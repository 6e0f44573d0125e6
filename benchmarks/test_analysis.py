"""What it costs to describe fields."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import clock

from localfields.analysis import fit_gabor, fit_sinusoid


def fields(shape, num):
    """A third each of waves under an envelope, of plain waves and of noise: easy and hard ones
    to fit.
    """
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"))
    column = (slice(None), *[None] * len(shape))
    waves = np.cos(
        2
        * np.pi
        * sum(
            rng.integers(1, 4, num)[column] * place / n
            for place, n in zip(places, shape, strict=True)
        )
        + rng.uniform(0, 2 * np.pi, num)[column]
    )
    around = sum((place - n / 2) ** 2 for place, n in zip(places, shape, strict=True))
    found = np.where(np.arange(num)[column] % 3 == 0, waves * np.exp(-around / 18), waves)
    noise = rng.normal(size=(num, *shape))
    return np.where(np.arange(num)[column] % 3 == 2, noise, found + 0.02 * noise)


@pytest.mark.parametrize(("shape", "num"), [((40,), 600), ((16, 16), 60)])
def test_fits(shape, num, report):
    given, axes = fields(shape, num), len(shape)
    kinds = {
        "sinusoids": lambda: fit_sinusoid(given, axes),
        "Gabors": lambda: fit_gabor(given, axes),
    }
    for name, fit in kinds.items():
        error = fit().error  # compiles
        assert (
            np.median(error[::3]) < (0.2 if name == "Gabors" else 2)
            and np.median(error[2::3]) > 0.5
        )
        lattice = "×".join(map(str, shape))
        value = clock(fit)
        report(
            f"fits of {num} {name} on {lattice} sites", value, "s", limit=2.0 if axes == 1 else None
        )
