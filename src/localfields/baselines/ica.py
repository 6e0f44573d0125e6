"""Independent component analysis, through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._spec import Choice, Count, declare, number
from .._types import Real, Whole
from .base import Baseline, Fitted, check_seed, without_warnings


class FastICA(Baseline):
    """Filters whose outputs are as non-Gaussian as possible (FastICA, Hyvärinen 1999).

    Samples are whitened on their leading principal components to outputs of unit variance. The
    fields are the rows of the unmixing matrix, which act on samples (`components_` in
    scikit-learn), not the columns of the mixing matrix.

    Example:
        >>> import localfields as lf
        >>> x = lf.stimuli.Kur((12,), xi=1, k=3).sample(0, 2000)
        >>> FastICA(4).fit(x).fields.shape
        (4, 12)
    """

    components: Whole = declare(
        Count(high=100_000), default=40, help="number of fields, at most the number of sites"
    )
    algorithm: str = declare(
        Choice(("parallel", "deflation")),
        default="parallel",
        help="all fields at once, or one by one",
    )
    contrast: str = declare(
        Choice(("logcosh", "exp", "cube")),
        default="logcosh",
        symbol="G",
        help="what stands for the distance from Gaussian",
    )
    iterations: Whole = declare(Count(high=10**6), default=200, help="most iterations")
    tolerance: Real = number(
        default=1e-4, low=0, help="fields that turn by less than this have converged"
    )

    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields from samples, (num, size); see `Baseline.fit`.

        Raises:
            InputError: If the samples cannot be fitted, or have fewer than `components`
                directions.
        """
        from sklearn.decomposition import FastICA as Fit
        from sklearn.exceptions import ConvergenceWarning

        x = self.check_samples(samples)
        self.check_rank(x)
        method = Fit(
            n_components=self.components,
            algorithm=self.algorithm,
            whiten="unit-variance",
            whiten_solver="eigh",  # of the covariance: less work for many more samples than sites
            fun=self.contrast,
            max_iter=self.iterations,
            tol=self.tolerance,
            random_state=check_seed(seed),
        )
        with without_warnings(ConvergenceWarning):
            method.fit(x)
        # The library tells of a failure in a warning, which may be of another thread, and by
        # deflation not at all.
        converged = method.n_iter_ < self.iterations
        return Fitted(np.asarray(method.components_, np.float64), converged, int(method.n_iter_))
