"""One definition drives everything: a class's fields are its specification.

Each field of a `Spec` is declared once, with its kind (a number in a range, a lattice shape, a choice, ...),
default, symbol and one-line meaning. Validation, the JSON form, the command-line options and the signature are
all read from that declaration.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import numpy as np

from ._kinds import Choice as Choice
from ._kinds import Count as Count
from ._kinds import Number as Number
from ._kinds import Row as Row
from ._kinds import Seeds as Seeds
from ._kinds import Shape as Shape
from .errors import Said, refuse, unknown


@dataclasses.dataclass(frozen=True)
class Nested:
    """Another specification, such as the marginal of a copula. `convert` may turn other values into one."""

    family: str
    convert: Callable[[str, Any], Any] | None = None
    static: ClassVar[bool] = False
    metavar: ClassVar[str] = "NAME"

    def check(self, name: str, value: Any) -> Spec:
        """Return the specification, or refuse."""
        if isinstance(value, type) and issubclass(value, Spec):
            got, advice = Said(f"the class {value.__name__}"), f"Call it: {value.__name__}()."
            refuse(f"`{name}`", got, f"a {self.family}", advice)
        if self.convert is not None and not isinstance(value, Spec):
            value = self.convert(name, value)
        if isinstance(value, str):
            value = self.parse(name, value)
        elif isinstance(value, dict):
            value = from_json(value)
        if not isinstance(value, Spec) or value.family != self.family:
            refuse(
                f"`{name}`",
                value,
                f"a {self.family}",
                f"Choose one of: {', '.join(registered(self.family))}.",
            )
        return value

    def parse(self, name: str, text: str) -> Spec:
        """Read `laplace`, `algebraic:k=5` or `given:row=1,0.5,0.25,0.5` from the command line."""
        kind, _, rest = text.partition(":")
        cls = find(self.family, kind)
        options: dict[str, str] = {}
        key = ""
        for part in rest.split(",") if rest else []:
            name_of_field, equals, text_value = part.partition("=")
            if not equals and options:  # more of a row: `given:row=1,0.5,0.25`
                options[key] += f",{part}"
                continue
            key = name_of_field
            options[key] = text_value
        return from_text(cls, options)

    def text(self, value: Spec) -> str:
        """As it is typed: `algebraic:k=5`."""
        options = ",".join(f"{name}={text}" for name, text in to_text(value).items())
        return f"{name_of(type(value))}:{options}" if options else name_of(type(value))

    def encode(self, value: Spec) -> dict[str, Any] | str:
        """The JSON form; a value with nothing to tell is its name."""
        return to_json(value) if fields(type(value)) else name_of(type(value))


@dataclasses.dataclass(frozen=True)
class Many:
    """Several specifications of one family, such as the classes of a task."""

    family: str
    static: ClassVar[bool] = False
    metavar: ClassVar[str] = "NAME"

    def check(self, name: str, value: Any) -> tuple[Spec, ...]:
        """Return a tuple of them, or refuse."""
        if isinstance(value, Spec) or not isinstance(value, (tuple, list)):
            value = (value,)
        return tuple(Nested(self.family).check(name, one) for one in value)

    def encode(self, value: tuple[Spec, ...]) -> list[Any]:
        """The JSON form."""
        return [to_json(one) for one in value]


@dataclasses.dataclass(frozen=True)
class Declared:
    """What a field says of itself, besides its name and default."""

    kind: Any
    help: str
    symbol: str = ""


def declare(default: Any, kind: Any, *, help: str, symbol: str = "") -> Any:
    """Declare a field of a specification."""
    metadata = {"spec": Declared(kind, help, symbol)}
    return eqx.field(default=default, static=kind.static, metadata=metadata)


def number(
    default: float, *, low=-math.inf, high=math.inf, closed=False, symbol="", help: str, hint=""
) -> Any:
    """Declare a number; bounds are open unless `closed`."""
    return declare(default, Number(low, high, closed, hint), help=help, symbol=symbol)


def derived(make: Callable[[Any], Any]) -> Any:
    """Declare a leaf computed once from the other fields (a table); it is no part of the specification."""
    return eqx.field(default=None, metadata={"derive": make})


class Spec(eqx.Module):
    """A small frozen value whose declared fields are its whole specification."""

    family: ClassVar[str] = ""
    variadic: ClassVar[str] = ""  # the field that takes all values given by position

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give the class an initializer with its own signature, and enter it in the registry."""
        super().__init_subclass__(**kwargs)
        cls.__init__ = _initializer(cls)
        if cls.family:
            known = _registry.setdefault(cls.family, {})
            other = known.get(name_of(cls), cls)
            if (
                other.__module__ != cls.__module__
            ):  # of its own module it is a new version, as in a notebook
                got = Said(
                    f"a second {cls.__name__}, from {cls.__module__} after {other.__module__}"
                )
                refuse(
                    f"The {cls.family} `{name_of(cls)}`",
                    got,
                    "the only one of its name",
                    "Rename the class.",
                )
            known[name_of(cls)] = cls

    def __repr__(self) -> str:
        """The call that makes this value; fields at their defaults are left out, except the first."""
        parts = []
        for position, (field, _) in enumerate(fields(type(self))):
            value = getattr(self, field.name)
            same = _same(value, field.default)
            if position == 0 or not same:
                parts.append(f"{field.name}={_shown(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @classmethod
    def normalize_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Turn what a user may give into plain field values, where that takes several fields at once."""
        return given

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated like any other.

        Example:
            >>> import localfields as lf
            >>> lf.stimuli.NLGP(40, gain=100).replace(gain=2)
            NLGP(shape=(40,), gain=2.0)
        """
        now = {field.name: getattr(self, field.name) for field, _ in fields(type(self))}
        return type(self)(**{**now, **changes})

    def require_one(self, purpose: str) -> None:
        """Refuse a sweep where one value is needed."""
        for name, value in number_values(self):
            if np.ndim(value):
                advice = "An array sweeps an ensemble in training; give one number here."
                refuse(
                    f"`{name}`", Said(f"{np.size(value)} values"), f"one number {purpose}", advice
                )

    def to_json(self) -> dict[str, Any]:
        """Return the plain-value form, which `localfields.from_json` reads back."""
        return to_json(self)


_registry: dict[str, dict[str, type[Spec]]] = {}

# The module that defines each family of this package, imported when the family is first asked for: a specification
# can be read, and training finds the theories, whatever else has been imported.
_HOMES = {
    "baseline": "baselines",
    "experiment": "experiments",
    "gates": "networks.gates",
    "kernel": "lattice",
    "marginal": "marginals",
    "method": "experiments",
    "network": "networks",
    "preprocess": "stimuli",
    "stimulus": "stimuli",
    "sweep": "experiments",
    "task": "tasks",
    "theory": "theory",
}


def _initializer(cls: type[Spec]) -> Callable[..., None]:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name, value in _bind(cls, args, kwargs).items():
            setattr(self, name, value)
        for field in dataclasses.fields(cls):
            if "derive" in field.metadata:
                make, count = field.metadata["derive"], num_members(self)
                made = (
                    make(self)
                    if count is None
                    else np.stack([make(member(self, m)) for m in range(count)])
                )
                setattr(self, field.name, made)

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, annotation in inspect.get_annotations(cls).items():
        default = cls.__dict__.get(name)
        if isinstance(default, dataclasses.Field) and "spec" in default.metadata:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(
                inspect.Parameter(name, kind, default=default.default, annotation=annotation)
            )
    __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    __init__.__doc__ = None
    return __init__


def _bind(cls: type[Spec], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    declared = fields(cls)
    names = [field.name for field, _ in declared]
    if cls.variadic and args:
        args, kwargs = (), {cls.variadic: args, **kwargs}
    if len(args) > len(names):
        advice = f"They are {', '.join(names)}." if names else "It has no fields."
        refuse(
            f"The number of values for {cls.__name__}", len(args), f"at most {len(names)}", advice
        )
    _check_names(cls, kwargs)
    given = dict(zip(names, args, strict=False))
    for name in given:
        if name in kwargs:
            refuse(
                f"`{name}`",
                Said("two values"),
                "given once",
                "Give it by position or by name, not both.",
            )
    given |= kwargs
    for field, _ in declared:
        given.setdefault(field.name, field.default)
    given = cls.normalize_fields(given)
    return {field.name: say.kind.check(field.name, given[field.name]) for field, say in declared}


def _check_names(cls: type[Spec], given: Iterable[Any]) -> None:
    names = [field.name for field, _ in fields(cls)]
    for name in given:
        if name not in names:
            unknown(f"A field of {cls.__name__}", name, names)


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, np.ndarray):
        return isinstance(default, tuple) and np.array_equal(value, default)
    if isinstance(value, Spec):
        return isinstance(default, Spec) and repr(value) == repr(default)
    return type(value) is type(default) and value == default


def _shown(value: Any) -> str:
    if isinstance(value, (np.ndarray, jax.Array)):
        # Fields to start from can be pasted back; a table of thousands of numbers is not for reading.
        return (
            repr(np.asarray(value).tolist())
            if np.size(value) <= 1024
            else f"<array of shape {np.shape(value)}>"
        )
    return repr(value)


def fields(cls: type[Spec]) -> list[tuple[dataclasses.Field, Declared]]:
    """Return the declared fields of a specification class, in the order its body declares them."""
    order = list(inspect.get_annotations(cls))
    declared = [
        (field, field.metadata["spec"])
        for field in dataclasses.fields(cls)
        if "spec" in field.metadata
    ]
    return sorted(
        declared, key=lambda pair: order.index(pair[0].name) if pair[0].name in order else -1
    )


def number_values(value: Spec) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every number field, those of nested specifications too."""
    for field, say in fields(type(value)):
        one = getattr(value, field.name)
        if isinstance(say.kind, Number):
            yield field.name, one
        for part in one if isinstance(one, tuple) else (one,):
            if isinstance(part, Spec):
                yield from number_values(part)


def num_members(value: Spec) -> int | None:
    """Length of the arrays that sweep this specification's numbers, or None when there are none.

    Raises:
        InputError: When two sweeps have different lengths.
    """
    found = [(name, len(given)) for name, given in number_values(value) if np.ndim(given) == 1]
    if len({count for _, count in found}) > 1:
        lengths = ", ".join(f"{name} has {count}" for name, count in found)
        refuse(
            "Swept numbers",
            Said(lengths),
            "of one length",
            "Repeat the shorter ones, one value a member.",
        )
    return found[0][1] if found else None


def member(value: Any, index: int) -> Any:
    """The specification of one member of a sweep."""
    if isinstance(value, tuple):
        return tuple(member(part, index) for part in value)
    if not isinstance(value, Spec):
        return value
    changes = {}
    for field, say in fields(type(value)):
        given = getattr(value, field.name)
        swept = isinstance(say.kind, Number) and np.ndim(given) == 1
        changes[field.name] = float(given[index]) if swept else member(given, index)
    return type(value)(**changes)


def swept_leaves(value: Any) -> Any:
    """A tree like `value` that says of every leaf whether it has an axis of members."""

    def is_swept(path: tuple[Any, ...], leaf: Any) -> bool:
        parent = value
        for step in path[:-1]:
            parent = getattr(parent, step.name) if hasattr(step, "name") else parent[step.idx]
        field = parent.__dataclass_fields__[path[-1].name]
        if "derive" in field.metadata:
            return num_members(parent) is not None
        return isinstance(field.metadata["spec"].kind, Number) and np.ndim(leaf) == 1

    return jax.tree_util.tree_map_with_path(is_swept, value)


def name_of(cls: type[Spec]) -> str:
    """Return the name used in JSON and at the command line: `StudentT` is `student-t`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def registered(family: str) -> dict[str, type[Spec]]:
    """Return every final class of a family, by name."""
    if family in _HOMES:
        importlib.import_module(f".{_HOMES[family]}", __package__)
    return {
        name: cls
        for name, cls in sorted(_registry.get(family, {}).items())
        if not inspect.isabstract(cls) and not cls.__name__.startswith("Abstract")
    }


def attribute(room: str, family: str, name: str) -> type[Spec]:
    """The class that a room is asked for: one in a new file, or a plugin's, needs no entry in its `__init__`."""
    for cls in registered(family).values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module {room!r} has no attribute {name!r}")


def find(family: str, name: str) -> type[Spec]:
    """Return the class of that name, or refuse with the nearest one."""
    known = registered(family)
    if not isinstance(name, str) or name not in known:
        unknown(f"The {family}", name, known)
    return known[name]


def to_json(value: Spec) -> dict[str, Any]:
    """Return a specification as plain values: `{"type": "stimulus/nlgp", "shape": [40], …}`."""
    plain: dict[str, Any] = {"type": f"{value.family}/{name_of(type(value))}"}
    for field, say in fields(type(value)):
        plain[field.name] = say.kind.encode(getattr(value, field.name))
    return plain


def from_json(plain: Any) -> Any:
    """Build a specification from its plain-value form.

    Args:
        plain: What `to_json` returned, or the same after a trip through a JSON text.

    Raises:
        InputError: When the type or a field is unknown, or a value is illegal.

    Example:
        >>> import localfields as lf
        >>> lf.from_json({"type": "stimulus/nlgp", "shape": [40], "gain": 100})
        NLGP(shape=(40,), gain=100.0)
    """
    example = 'For example {"type": "stimulus/nlgp", "shape": [40]}.'
    if not isinstance(plain, dict):
        refuse("A specification", plain, "a JSON object", example)
    head = plain.get("type")
    if not isinstance(head, str) or head.partition("/")[0] not in {*_HOMES, *_registry}:
        families = ", ".join(f"{family}/…" for family in sorted({*_HOMES, *_registry}))
        refuse("The `type` of a specification", head, f"one of {families}", example)
    family, _, name = head.partition("/")
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
    kinds = {field.name: say.kind for field, say in fields(cls)}
    return {name: kinds[name].parse(name, text) for name, text in texts.items()}


def to_text(value: Spec) -> dict[str, str]:
    """What `from_text` reads: the fields that are not at their defaults, as they are typed."""
    given = ((field, say, getattr(value, field.name)) for field, say in fields(type(value)))
    return {
        field.name: text_of(say.kind, now)
        for field, say, now in given
        if not _same(now, field.default)
    }


def text_of(kind: Any, value: Any) -> str:
    """A value as it is typed; kinds that are not typed as Python writes them have a `text` of their own."""
    if hasattr(kind, "text"):
        return kind.text(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def discover(package: str, path: Sequence[str]) -> Iterator[str]:
    """Import every module of a folder of variants, so that a new file needs no other change (`_name` is no variant)."""
    for module in pkgutil.walk_packages(path, f"{package}."):
        name = module.name.removeprefix(f"{package}.")
        if name.rpartition(".")[2].startswith("_"):
            continue
        importlib.import_module(module.name)
        yield name
