"""A metric of your own: copy this file, complete the line marked FILL IN, and import it.

    import my_metric
    lf.measure(run, "my_metric")

Fields that are zero everywhere or not finite never reach it: `measure` gives nan for them.
"""

from typing import Any

import numpy as np

from localfields.analysis import metric


@metric  # @metric(slow=True): left out of `measure` unless it is asked for by name
def my_metric(fields: Any, axes: int = 1) -> np.ndarray:
    """One line that says what is measured: it is what tables and files call it.

    Args:
        fields: (…, *shape), any number of leading axes.
        axes: Number of axes of the lattice: 1 on a ring, 2 on a torus.

    Returns:
        One number per field, (…,); or on a torus one per axis, (…, axes).
    """
    sites = tuple(range(-axes, 0))  # noqa: F841 (for what you fill in)
    fields = np.asarray(fields, np.float64)
    return ...  # FILL IN metric, a sum over `sites`
