"""Optimizers as values: a name of optax with its options, such as `sgd:momentum=0.9`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from .._spec import Choice
from ..errors import InputError, shorten, show, unknown_name

OPTIMIZERS = ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "nadam", "adabelief")
NOT_TYPED = ("learning_rate", "mask", "accumulator_dtype", "mu_dtype")  # arguments, not options


@dataclasses.dataclass(frozen=True)
class OptimizerName(Choice):
    """The name of an optimizer of optax, with options: `adam`, `sgd:momentum=0.9,nesterov=true`."""

    names: tuple[str, ...] = OPTIMIZERS

    @property
    def metavar(self) -> str:
        """The names, as the command line shows them."""
        return f"{' | '.join(self.names)}, with options as sgd:momentum=0.9"

    def check(self, name: str, value: Any) -> str:
        """Return the text, with its options in the order and form that all spellings share."""
        optimizer, colon, text = str(value).partition(":")
        if not isinstance(value, str) or optimizer not in self.names:
            raise unknown_name(f"`{name}`", value, self.names)
        if not colon:
            return optimizer
        known = _options(optimizer)
        options: dict[str, str] = {}
        for part in text.split(","):
            option, _, given = (word.strip() for word in part.partition("="))
            if option not in known:
                raise unknown_name(f"option of {optimizer}", option, known)
            if option in options:
                raise InputError(f"`{name}`: `{option}` was given twice. Give each option once.")
            options[option] = _value_text(f"`{option}` of {optimizer}", known[option], given)
        return f"{optimizer}:{','.join(f'{key}={options[key]}' for key in sorted(options))}"


def _options(optimizer: str) -> dict[str, Any]:
    """The options of an optimizer and their defaults."""
    import optax

    parameters = inspect.signature(getattr(optax, optimizer)).parameters
    return {name: p.default for name, p in parameters.items() if name not in NOT_TYPED}


def _value_text(name: str, default: Any, text: str) -> str:
    """The one text of a truth value or a number."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} must be true or false, got {show(text)}.")
        return text.lower()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} must be a number, such as 0.9, got {show(text)}.")
    return f"{value:.12g}"


def check_optimizer(optimizer: Any) -> Callable[..., Any] | None:
    """A function of `learning_rate` that returns an optax transformation; None for plain descent.

    Raises:
        InputError: If it is neither a known name nor such a function.
    """
    if isinstance(optimizer, str):
        return _from_name(OptimizerName().check("optimizer", optimizer))
    import optax

    if isinstance(optimizer, optax.GradientTransformation):
        raise InputError(
            "`optimizer` is an optax transformation that has its learning rate already. Give a "
            "name with options, such as 'sgd:momentum=0.9', or a function of `learning_rate`, such "
            "as `functools.partial(optax.sgd, momentum=0.9)`."
        )
    if not callable(optimizer):
        raise unknown_name("optimizer", optimizer, OPTIMIZERS)
    try:
        transform: Any = optimizer(learning_rate=1.0)
        problem = f"it returns {show(transform)}"
    except TypeError as error:
        transform, problem = None, f"it fails ({shorten(error)})"
    if not isinstance(transform, optax.GradientTransformation):
        raise InputError(
            "`optimizer` must be a function of `learning_rate` that returns an optax "
            f"transformation, such as `functools.partial(optax.sgd, momentum=0.9)`; {problem}."
        )
    return optimizer


@functools.cache  # one function per text, so that equal texts share a compiled program
def _from_name(text: str) -> Callable[..., Any] | None:
    name, colon, options = text.partition(":")
    if text == "sgd":
        return None
    import optax

    make = getattr(optax, name)
    if not colon:
        return make
    pairs = (part.split("=") for part in options.split(","))
    flags = {"true": True, "false": False}
    return functools.partial(
        make, **{key: flags[value] if value in flags else float(value) for key, value in pairs}
    )


def num_arrays(make: Callable[..., Any] | None) -> int:
    """How many arrays as large as the parameters an optimizer keeps."""
    if make is None:
        return 0
    import jax
    import jax.numpy as jnp

    state = jax.eval_shape(make(learning_rate=1.0).init, jnp.zeros((2,)))
    return sum(leaf.shape == (2,) for leaf in jax.tree.leaves(state))
