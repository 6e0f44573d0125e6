"""Sparse coding by mini-batch dictionary learning, through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._spec import Count, declare, number
from .._types import Real, Whole
from .base import Baseline, Fitted, check_seed, without_warnings


class SparseCoding(Baseline):
    """Atoms of which few at a time make up a sample (Olshausen & Field 1996; Mairal et al. 2009).

    Minimizes the mean of ½‖x − cD‖² + λ‖c‖₁ over codes c and atoms of norm one at most, the rows of
    D; samples are centered and divided by one standard deviation, that of all sites together. The
    fields are these atoms (`components_` in scikit-learn): the best code depends on a sample only
    through its products with them, so that they are what acts on samples, before codes compete. The
    code itself is no linear function of the sample.

    Example:
        >>> import localfields as lf
        >>> x = lf.stimuli.Kur((12,), xi=1, k=3).sample(0, 500)
        >>> SparseCoding(4).fit(x).fields.shape
        (4, 12)
    """

    components: Whole = declare(
        Count(high=100_000), default=40, help="number of fields; may be more than sites"
    )
    penalty: Real = number(default=1.0, low=0, symbol="λ", help="price of a code's sum of sizes")
    steps: Whole = declare(
        Count(high=10**8),
        default=1000,
        help="mini-batches at most; the last pass over the samples is finished",
    )
    batch: Whole = declare(Count(high=10**6), default=256, help="samples per step")
    tolerance: Real = number(
        default=1e-3, low=0, help="atoms that move by less than this per step have converged"
    )

    def fit(self, samples: Any, seed: int = 0) -> Fitted:
        """Learn fields from samples, (num, size); see `Baseline.fit`.

        Returns:
            Atoms. Iterations are mini-batches; converged when atoms stood still before the last.
            Note: `active`, the share of a code that is not zero, over about 2000 of the samples.

        Raises:
            InputError: If the samples cannot be fitted.
        """
        from sklearn.decomposition import MiniBatchDictionaryLearning as Fit
        from sklearn.exceptions import ConvergenceWarning

        x = self.check_samples(samples, overcomplete=True)
        # In double precision: in single, codes do not meet their tolerance.
        x = x - x.mean(axis=0, dtype=np.float64)
        x /= x.std()  # the library starts from atoms that know the scale
        batch = min(self.batch, len(x))
        of_pass = -(-len(x) // batch)
        passes = -(-self.steps // of_pass)
        method = Fit(
            n_components=self.components,
            alpha=self.penalty,  # pyright: ignore[reportArgumentType]  # sklearn's stubs say int
            max_iter=passes,
            batch_size=batch,
            fit_algorithm="cd",
            transform_algorithm="lasso_cd",
            transform_alpha=self.penalty,
            tol=self.tolerance,
            # The cost of a mini-batch is noisy: that rule would stop long before atoms converge.
            max_no_improvement=10**9,
            random_state=check_seed(seed),
        )
        # A code that does not quite meet its tolerance is no matter: the next step makes another of
        # it.
        with without_warnings(ConvergenceWarning):
            method.fit(x)
            active = float((method.transform(x[:: max(1, len(x) // 2000)]) != 0).mean())
        steps = int(method.n_steps_)
        atoms = np.asarray(method.components_, np.float64)
        return Fitted(atoms, steps < passes * of_pass, steps, {"active": active})
