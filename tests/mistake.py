"""What comes of a call that the library must refuse, and values that the tables of such calls
share.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

Mistake = Callable[[Any], Any]  # of the package, as `lf`


def attempt(make: Mistake) -> dict[str, Any]:
    """Make one mistake. Returns the message, the type of the error, and whether JAX was at work."""
    import localfields as lf
    from localfields._ensemble import TRACES

    before = TRACES["advance"]
    try:
        value = make(lf)
    except Exception as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        compiled = any("/jax/_src/" in name.replace("\\", "/") for name in frames)
        return {
            "type": type(error).__name__,
            "message": str(error),
            "compiled": compiled or TRACES["advance"] > before,
        }
    return {"type": "no error", "message": f"accepted as {value!r}", "compiled": False}


def raising(text: str) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise RuntimeError(text)

    return function


def array(*values: Any) -> Any:
    import numpy as np

    return np.array(values)


def keys(count: int) -> Any:
    import jax

    return jax.random.split(jax.random.key(0), count)


def exponential(u: Any) -> Any:
    import numpy as np

    return -np.log1p(-np.minimum(u, 1 - 1e-15))
