"""Why ICA finds few localized fields in a mixture of two lengthscales: `python
benchmarks/ica_mixture.py`.

One row a stimulus and kind of field: how many there are, the excess kurtosis of their outputs over
all samples and within the classes, and by how much the variance of the output differs between the
classes.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import localfields as lf
from localfields.experiments.fit import draw_mixture
from localfields.trajectory import inverse_participation_ratio, localized_from


def rows(stimuli: list[Any], samples: int = 20_000, sites: int = 40) -> dict[str, dict[str, float]]:
    """Fields of ICA on a mixture of two classes in equal parts, the localized and the others."""
    x = draw_mixture(lf.Discrimination(*stimuli), jax.random.key(0), samples).astype(np.float64)
    fitted = lf.baselines.FastICA(sites).fit(x)
    outputs = x @ fitted.fields.T
    one, two = outputs[: samples // 2], outputs[samples // 2 :]
    ratio = np.abs(np.log(one.var(axis=0) / two.var(axis=0)))
    local = inverse_participation_ratio(fitted.fields, 1) > localized_from(sites)
    return {
        name: {
            "fields": int(which.sum()),
            "kurtosis": float(_kurtosis(outputs)[which].mean()),
            "within classes": float((_kurtosis(one) + _kurtosis(two))[which].mean() / 2),
            "ratio of variances": float(np.exp(np.median(ratio[which]))),
        }
        for name, which in (("localized", local), ("others", ~local))
        if which.any()
    }


def _kurtosis(y: np.ndarray) -> np.ndarray:
    return (y**4).mean(axis=0) / (y**2).mean(axis=0) ** 2 - 3


def main() -> None:
    """Print the table: one lengthscale, two, and two with the same covariances and normal laws."""

    def kur(*lengths: float) -> list[Any]:
        return [lf.stimuli.Kur((40,), xi=xi, k=10.0) for xi in lengths]

    cases = {"Kur(10), ξ = 1": kur(1, 1), "ξ = 0.5, 1": kur(0.5, 1), "ξ = 1, 3": kur(1, 3)}
    cases["ξ = 1, 3, normal"] = [one.gaussian_clone() for one in kur(1, 3)]
    for name, stimuli in cases.items():
        for kind, found in rows(stimuli).items():
            print(
                f"{name:18} {kind:10}",
                "  ".join(f"{key} {value:.3g}" for key, value in found.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
