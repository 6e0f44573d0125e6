"""One definition drives everything: a class's fields are its specification.

Each field of a `Spec` is declared once, with its kind (a number in a range, a lattice shape, a
choice, …), default, symbol and one-line meaning. Validation, the JSON form, the command-line
options and the signature are all read from that declaration.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

import equinox as eqx
import jax
import numpy as np

from ._kinds import Choice as Choice
from ._kinds import Count as Count
from ._kinds import Kind as Kind
from ._kinds import Number as Number
from ._kinds import Row as Row
from ._kinds import Seeds as Seeds
from ._kinds import Shape as Shape
from ._registry import attribute as attribute
from ._registry import discover as discover
from ._registry import families, register, unambiguous_name
from ._registry import find as find
from ._registry import name_of as name_of
from ._registry import registered as registered
from .errors import InputError, show, unknown_name

LONGEST_REPR = 1024  # numbers of an array; longer ones are not for reading


@dataclasses.dataclass(frozen=True)
class Nested(Kind):
    """Another specification, such as a copula's marginal; `convert` makes one of other values."""

    family: str
    convert: Callable[[str, Any], Any] | None = None
    static: ClassVar[bool] = False
    metavar = "NAME"

    def check(self, name: str, value: Any) -> Any:
        """Return the specification, from one, its JSON form, or its text."""
        if isinstance(value, type) and issubclass(value, Spec):
            raise InputError(
                f"`{name}` must be a {self.family}, got the class {value.__name__}. "
                f"Call it: {value.__name__}()."
            )
        if self.convert is not None and not isinstance(value, Spec):
            value = self.convert(name, value)
        if isinstance(value, str):
            value = self.parse(name, value)
        elif isinstance(value, dict):
            value = from_json(value)
        if not isinstance(value, Spec) or value.family != self.family:
            raise InputError(
                f"`{name}` must be a {self.family}, got {show(value)}. "
                f"Choose one of: {', '.join(registered(self.family))}."
            )
        return value

    def parse(self, name: str, text: str) -> Spec:
        """Read `laplace`, `algebraic:k=5` or `given:row=1,0.5,0.25,0.5`."""
        class_name, _, rest = text.partition(":")
        options: dict[str, str] = {}
        field = ""
        for part in rest.split(",") if rest else []:
            key, equals, value = part.partition("=")
            if not equals and options:  # more of a row: `given:row=1,0.5,0.25`
                options[field] += f",{part}"
            else:
                field = key
                options[field] = value
        return from_text(find(self.family, class_name), options)

    def text(self, value: Spec) -> str:
        """Write `algebraic:k=5`."""
        options = ",".join(f"{name}={text}" for name, text in to_text(value).items())
        return f"{name_of(type(value))}:{options}" if options else name_of(type(value))

    def encode(self, value: Spec) -> dict[str, Any] | str:
        """Write JSON; a class without fields is its name."""
        return to_json(value) if fields(type(value)) else name_of(type(value))


@dataclasses.dataclass(frozen=True)
class Many(Kind):
    """Several specifications of one family, such as the classes of a task."""

    family: str
    static: ClassVar[bool] = False
    typed: ClassVar[bool] = False
    shown: ClassVar[bool] = True
    metavar = "NAME"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return a tuple of them."""
        parts = value if isinstance(value, (tuple, list)) else (value,)
        return tuple(Nested(self.family).check(name, part) for part in parts)

    def encode(self, value: tuple[Spec, ...]) -> list[Any]:
        """Write a list of JSON objects."""
        return [to_json(part) for part in value]


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What fields of several classes have in common: kind, meaning and symbol."""

    kind: Kind
    help: str
    symbol: str = ""


@dataclasses.dataclass(frozen=True)
class DeclaredField:
    """A declared field of a class."""

    name: str
    default: Any
    kind: Any
    help: str
    symbol: str


def declare(kind: Kind | Declaration, *, default: Any, help: str = "", symbol: str = "") -> Any:
    """Declare a field of a specification.

    Args:
        kind: What it holds, such as `Count(high=100)`; or a `Declaration` that classes share.
        default: Its value when none is given.
        help: Its meaning, in a few words.
        symbol: As in formulas.
    """
    if not isinstance(kind, Declaration):
        kind = Declaration(kind, help, symbol)
    return eqx.field(default=default, static=kind.kind.static, metadata={"declaration": kind})


def number(
    *,
    default: float,
    low: float = -math.inf,
    high: float = math.inf,
    closed: bool = False,
    help: str,
    symbol: str = "",
    hint: str = "",
    limit: str = "",
) -> Any:
    """Declare a number that can be swept; bounds are open unless `closed`."""
    kind = Number(low, high, closed, hint, limit)
    return declare(kind, default=default, help=help, symbol=symbol)


def derived(make: Callable[[Any], Any], *, init: Literal[False] = False) -> Any:
    """Declare a leaf computed once from the other fields, such as a table."""
    del init  # tells type checkers that the constructor has no such argument
    return eqx.field(default=None, metadata={"derive": make})


if TYPE_CHECKING:

    class Module(abc.ABC):
        """Stands for equinox's, whose own `dataclass_transform` would hide ours."""

        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    FieldType = TypeVar("FieldType")

    def required(kind: type[FieldType]) -> FieldType:
        """In an abstract class, a field of this type that every subclass declares."""
        ...

else:
    Module = eqx.Module

    def required(kind: Any) -> Any:
        """In an abstract class, a field of this type that every subclass declares."""
        # An annotation in the base class would put the field before those of the subclass.
        return property(abc.abstractmethod(lambda self: None), doc="Declared by each subclass.")


@dataclass_transform(frozen_default=True, field_specifiers=(declare, number, derived))
class Spec(Module):
    """A small frozen value whose declared fields are its whole specification."""

    family: ClassVar[str] = ""
    variadic: ClassVar[str] = ""  # the field that takes all values given by position

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give the class an initializer with its own signature, and enter it in the registry."""
        super().__init_subclass__(**kwargs)
        cls.__init__ = _initializer(cls)
        if cls.family:
            register(cls)

    def __repr__(self) -> str:
        """The call that makes this value; only numbers and shapes are shown at their defaults."""
        parts = []
        for position, field in enumerate(fields(type(self))):
            value = getattr(self, field.name)
            if field.name == self.variadic:
                parts += [_shown(part) for part in value]
            elif field.kind.shown or position == 0 or not _same(value, field.default):
                parts.append(f"{field.name}={_shown(value)}")
        return f"{unambiguous_name(type(self))}({', '.join(parts)})"

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Turn given values into plain field values, where that takes several fields at once."""
        return given

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated like any other.

        Example:
            >>> import localfields as lf
            >>> lf.stimuli.NLGP(40, gain=100).replace(gain=2)
            NLGP(shape=(40,), xi=3.0, gain=2.0)
        """
        values = {field.name: getattr(self, field.name) for field in fields(type(self))}
        return type(self)(**{**values, **changes})

    def require_one(self, purpose: str) -> None:
        """Raise `InputError` for a sweep where one value is needed."""
        for name, value in number_values(self):
            if np.ndim(value):
                raise InputError(
                    f"`{name}` must be one number {purpose}, got {np.size(value)} values. "
                    "An array sweeps an ensemble in training; give one number here."
                )

    def to_json(self) -> dict[str, Any]:
        """Return the plain-value form, which `localfields.from_json` reads back."""
        return to_json(self)


def _initializer(cls: type[Spec]) -> Callable[..., None]:
    """An initializer that normalizes and checks, with a signature from the declared fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name, value in _bind(cls, args, kwargs).items():
            setattr(self, name, value)
        # A table of a swept value is one table per member, stacked: `num_members` sees the numbers
        # that have just been set.
        for field in dataclasses.fields(cls):
            if "derive" in field.metadata:
                make, count = field.metadata["derive"], num_members(self)
                if count is None:
                    leaf = make(self)
                else:
                    leaf = np.stack([make(member(self, index)) for index in range(count)])
                setattr(self, field.name, leaf)

    # The class is not a dataclass yet: inherited fields come first, then those of its own body.
    declared: dict[str, dataclasses.Field] = {}
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
        declared |= getattr(base, "__dataclass_fields__", {}) if base is not cls else {}
    for name in inspect.get_annotations(cls):
        if isinstance(cls.__dict__.get(name), dataclasses.Field):
            declared[name] = cls.__dict__[name]
    Parameter = inspect.Parameter
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    kind = Parameter.KEYWORD_ONLY if cls.variadic else Parameter.POSITIONAL_OR_KEYWORD
    for name, field in declared.items():
        if name == cls.variadic:
            parameters.append(
                Parameter(name, Parameter.VAR_POSITIONAL, annotation=annotations[name])
            )
        elif "declaration" in field.metadata:
            parameters.append(
                Parameter(name, kind, default=field.default, annotation=annotations[name])
            )
    __init__.__signature__ = inspect.Signature(parameters)  # read by `inspect`
    __init__.__doc__ = None
    return __init__


def _bind(cls: type[Spec], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Checked values of all fields, from what the constructor was given."""
    declared = fields(cls)
    names = [field.name for field in declared]
    if cls.variadic and args:
        args, kwargs = (), {cls.variadic: args, **kwargs}
    if len(args) > len(names):
        raise InputError(
            f"{cls.__name__} takes at most {len(names)} values, got {len(args)}. "
            + (f"They are {', '.join(names)}." if names else "It has no parameters.")
        )
    _check_names(cls, kwargs)
    given = dict(zip(names, args, strict=False))
    for name in given:
        if name in kwargs:
            raise InputError(f"`{name}` was given twice. Give it by position or by name, not both.")
    given = cls.normalize_fields({field.name: field.default for field in declared} | given | kwargs)
    return {field.name: field.kind.check(field.name, given[field.name]) for field in declared}


def _check_names(cls: type[Spec], given: Iterable[Any]) -> None:
    names = [field.name for field in fields(cls)]
    for name in given:
        if name not in names:
            if not names:
                raise InputError(f"{cls.__name__} has no parameters, got {show(name)}.")
            raise unknown_name(f"parameter of {cls.__name__}", name, names)


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, np.ndarray):
        return isinstance(default, tuple) and np.array_equal(value, default)
    if isinstance(value, Spec):
        return isinstance(default, Spec) and repr(value) == repr(default)
    return type(value) is type(default) and value == default


def _shown(value: Any) -> str:
    if isinstance(value, (np.ndarray, jax.Array)):
        if np.size(value) > LONGEST_REPR:
            return f"<array of shape {np.shape(value)}>"
        return repr(np.asarray(value).tolist())
    return repr(value)


def fields(cls: type[Spec]) -> list[DeclaredField]:
    """Return the declared fields of a specification class: inherited ones, then its own."""
    declared = [
        (field, field.metadata["declaration"])
        for field in dataclasses.fields(cls)
        if "declaration" in field.metadata
    ]
    return [
        DeclaredField(field.name, field.default, shared.kind, shared.help, shared.symbol)
        for field, shared in declared
    ]


def number_values(value: Spec) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every number field, those of nested specifications too."""
    for field in fields(type(value)):
        current = getattr(value, field.name)
        if isinstance(field.kind, Number):
            yield field.name, current
        for part in current if isinstance(current, tuple) else (current,):
            if isinstance(part, Spec):
                yield from number_values(part)


def num_members(value: Spec) -> int | None:
    """Length of the arrays that sweep this specification's numbers, or None when there are none.

    Raises:
        InputError: If two sweeps have different lengths.
    """
    lengths = [(name, len(swept)) for name, swept in number_values(value) if np.ndim(swept) == 1]
    if len({count for _, count in lengths}) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in lengths)
        raise InputError(
            f"Swept numbers must have one length: {counts}. "
            "Repeat the shorter ones, one value per member."
        )
    return lengths[0][1] if lengths else None


def member(value: Any, index: int) -> Any:
    """The specification of one member of a sweep."""
    if isinstance(value, tuple):
        return tuple(member(part, index) for part in value)
    if not isinstance(value, Spec):
        return value
    values = {}
    for field in fields(type(value)):
        current = getattr(value, field.name)
        swept = isinstance(field.kind, Number) and np.ndim(current) == 1
        values[field.name] = float(current[index]) if swept else member(current, index)
    return type(value)(**values)


def swept_leaves(value: Any) -> Any:
    """A tree like `value` that says of every leaf whether it has an axis of members."""

    def is_swept(path: tuple[Any, ...], leaf: Any) -> bool:
        parent = value
        for step in path[:-1]:
            parent = getattr(parent, step.name) if hasattr(step, "name") else parent[step.idx]
        metadata = parent.__dataclass_fields__[path[-1].name].metadata
        if "derive" in metadata:  # made from all numbers of its owner, whichever of them is swept
            return num_members(parent) is not None
        return isinstance(metadata["declaration"].kind, Number) and np.ndim(leaf) == 1

    return jax.tree_util.tree_map_with_path(is_swept, value)


def to_json(value: Spec) -> dict[str, Any]:
    """Return a specification as plain values: `{"type": "stimulus/nlgp", "shape": [40], …}`."""
    plain: dict[str, Any] = {"type": f"{value.family}/{name_of(type(value))}"}
    for field in fields(type(value)):
        plain[field.name] = field.kind.encode(getattr(value, field.name))
    return plain


def from_json(plain: Any) -> Any:
    """Build a specification from its plain-value form.

    Args:
        plain: What `to_json` returned, or the same after a trip through a JSON text.

    Raises:
        InputError: If the type or a field is unknown, or a value is illegal.

    Example:
        >>> import localfields as lf
        >>> lf.from_json({"type": "stimulus/nlgp", "shape": [40], "gain": 100})
        NLGP(shape=(40,), xi=3.0, gain=100.0)
    """
    example = 'For example {"type": "stimulus/nlgp", "shape": [40]}.'
    if not isinstance(plain, dict):
        raise InputError(f"A specification must be a JSON object, got {show(plain)}. {example}")
    family, _, name = str(plain.get("type")).partition("/")
    if not isinstance(plain.get("type"), str) or family not in families():
        known = ", ".join(f"{family}/…" for family in sorted(families()))
        raise InputError(
            f"The `type` of a specification must be one of {known}, "
            f"got {show(plain.get('type'))}. {example}"
        )
    cls = find(family, name)
    given = {key: value for key, value in plain.items() if key != "type"}
    _check_names(cls, given)
    return cls(**given)


def from_text(cls: type[Spec], options: dict[str, str]) -> Any:
    """Build a specification from command-line texts, `{"gain": "100"}`."""
    _check_names(cls, options)
    return cls(**parse_fields(cls, options))


def parse_fields(cls: type[Spec], texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of some fields of a class, from their texts."""
    kinds = {field.name: field.kind for field in fields(cls)}
    return {name: kinds[name].parse(name, text) for name, text in texts.items()}


def to_text(value: Spec) -> dict[str, str]:
    """What `from_text` reads: the fields that are not at their defaults, as they are typed."""
    return {
        field.name: field.kind.text(getattr(value, field.name))
        for field in fields(type(value))
        if not _same(getattr(value, field.name), field.default)
    }
