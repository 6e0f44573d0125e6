"""Mistakes: calls that must be refused, and what came of making them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """A call that must be refused, and what its message must say."""

    make: Callable[[Any], Any]
    what: str
    expected: str
    got: str
    advice: str

    def is_told(self, message: str) -> bool:
        """Whether a message is one line of bearable length with all four parts, in their order."""
        parts = {
            part: re.escape(getattr(self, part)) for part in ("what", "expected", "got", "advice")
        }
        order = "{what} must be .*{expected}.*[,;] got .*{got}.*[.] .*{advice}.*".format(**parts)
        short = len(message.splitlines()) == 1 and len(message) < 600
        return short and re.fullmatch(order, message) is not None and message.endswith((".", "?"))


def attempt(mistake: Mistake) -> dict[str, Any]:
    """Make one mistake, and tell what came of it."""
    import localfields as lf

    try:
        value = mistake.make(lf)
    except Exception as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        return {
            "type": type(error).__name__,
            "is InputError": isinstance(error, lf.InputError),
            "message": str(error),
            "compiled": any("/jax/_src/" in name.replace("\\", "/") for name in frames),
        }
    return {
        "type": "no error",
        "is InputError": False,
        "message": f"accepted as {value!r}",
        "compiled": False,
    }


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
