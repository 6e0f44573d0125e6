"""Principal component analysis, through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._spec import Count, declare
from .._types import Whole
from .base import Baseline, Fitted, check_seed


class PCA(Baseline):
    """Directions of most variance: eigenvectors of the covariance, largest eigenvalue first.

    It sees second-order structure alone. On translation-invariant samples the covariance is
    circulant, so that fields are sinusoids, whatever the kurtosis. The fields are the rows of
    `components_` in scikit-learn, orthonormal directions that samples are projected on.

    Example:
        >>> import localfields as lf
        >>> x = lf.stimuli.Gaussian((12,), xi=1).sample(0, 2000)
        >>> PCA(4).fit(x).fields.shape
        (4, 12)
    """

    components: Whole = declare(
        Count(high=100_000), default=40, help="number of fields, at most the number of sites"
    )

    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields from samples, (num, size); see `Baseline.fit`. Nothing is random here.

        Returns:
            Fields of norm one. Notes: `variance`, along each of them, and `share`, of the whole
            variance.

        Raises:
            InputError: If the samples cannot be fitted, or have fewer than `components`
                directions.
        """
        from sklearn.decomposition import PCA as Fit

        check_seed(seed)
        x = self.check_samples(samples)
        self.check_rank(x)
        # The eigenvectors of the covariance: less work for many more samples than sites.
        method = Fit(self.components, svd_solver="covariance_eigh")
        # Centered here, as a large mean would cost digits in the library.
        method.fit(x - x.mean(axis=0, dtype=np.float64).astype(x.dtype))
        notes = {"variance": method.explained_variance_, "share": method.explained_variance_ratio_}
        plain = {name: np.asarray(values, np.float64).tolist() for name, values in notes.items()}
        return Fitted(np.asarray(method.components_, np.float64), True, 1, plain)
