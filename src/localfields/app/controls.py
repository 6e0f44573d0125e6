"""The controls of the explorer, made from the declared fields of the classes that they set.

Every field has a text, as it is typed at the command line. A number has sliders too, one per class
where the classes differ. A new stimulus brings its controls with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import panel as pn

from .._spec import Choice, Count, Nested, Number, fields, find, registered
from ..errors import InputError
from ..experiments import Training
from ..experiments.texts import DEFAULT_NETWORK, default_texts, may_vary, names_of
from ..tasks import Discrimination
from .limits import Limits, is_safe
from .page import TIGHT, WIDE

# Fields that are rarely changed are folded away.
RARE_FIELDS = {
    *("kernel", "labels", "proportions", "loss", "l1", "l2", "init", "optimizer"),
    *("stop_tol", "every", "evaluate", "quantities"),
}
POSITIONS = 200  # of a slider
MAX_RATIO = 30  # a number without an upper bound goes up to this many times its default


@dataclasses.dataclass(frozen=True)
class SliderScale:
    """The range of a slider, linear or logarithmic; `whole` for counts.

    Example:
        >>> scale = SliderScale(0.1, 1000, log=True)
        >>> [scale.value(position) for position in (0, 100, 200)]
        [0.1, 10.0, 1000.0]
        >>> scale.position(10)
        100
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @classmethod
    def of(cls, kind: Any, default: float, most: float = math.inf) -> SliderScale:
        """The range of a declared number: its bounds if it has some, else around its default.

        Args:
            kind: How the field is declared.
            default: Of the field.
            most: The largest value allowed here.
        """
        low, high = float(kind.low), min(float(kind.high), most)
        if isinstance(kind, Count):
            high = min(high, max(default * 100, 100)) if math.isinf(most) else high
            low = max(low, 1.0) if high > 50 else low
            return cls(low, high, log=low > 0 and high / low > 50, whole=True)
        assert isinstance(kind, Number)
        if default == 0:
            return cls(max(low, -2.0), min(high, 2.0 if low < 0 else 1.0))
        if low < 0:
            return cls(max(low, -3 * abs(default)), min(high, 3 * abs(default)))
        inside = 0.0 if kind.closed else 0.02  # keeps off the bound after rounding to three digits
        bottom = low + inside * max(low, 1.0) if low > 0 else default / MAX_RATIO
        top = min(high * (1 - inside) if math.isfinite(high) else high, default * MAX_RATIO)
        return cls(float(f"{bottom:.3g}"), float(f"{top:.3g}"), log=True)

    def value(self, position: int) -> float:
        """The number at a position, with three digits."""
        share = position / POSITIONS
        if self.log:
            value = self.low ** (1 - share) * self.high**share
        else:
            value = self.low * (1 - share) + self.high * share
        value = float(f"{value:.3g}")
        return float(round(value)) if self.whole else min(max(value, self.low), self.high)

    def position(self, value: float) -> int:
        """The position nearest to a number."""
        value = min(max(value, self.low), self.high)
        # In an order in which no number overflows, however far apart the ends are.
        low, high = self.low / 2, self.high / 2
        if self.log:
            value, low, high = math.log(value), math.log(self.low), math.log(self.high)
        else:
            value /= 2
        return round((value - low) / (high - low) * POSITIONS)

    def including(self, *values: float) -> SliderScale:
        """This range, widened where a legal value lies outside."""
        return dataclasses.replace(self, low=min(self.low, *values), high=max(self.high, *values))


class PromptSlider(pn.widgets.IntSlider):
    """A slider that reports within 5 ms: Panel's 50 are a quarter of what a summary may take."""

    _debounce = 5


class FieldControl:
    """The text of one field, and its sliders if it is a number."""

    def __init__(
        self, field: Any, default: str, text: str, most: float, on_change: Callable[[], None]
    ):
        self.name, kind = field.name, field.kind
        self.kind: Any = kind
        self.default, self.on_change = default, on_change
        self.quiet = False  # whether the control itself is being set, of which nobody is told
        self.scale: SliderScale | None = None
        self.sliders: list[PromptSlider] = []
        label = f"{field.name.replace('_', ' ')}  {field.symbol}".strip()
        if isinstance(kind, (Choice, Nested)):
            names = kind.names if isinstance(kind, Choice) else safe_names(kind.family)
            options = list(dict.fromkeys([*names, text]))
            self.input: Any = pn.widgets.Select(label=label, options=options, value=text, **WIDE)
        else:
            self.input = pn.widgets.TextInput(label=label, value=text, **WIDE)
        self.input.description = field.help
        self.input.param.watch(self._typed, "value")
        self.row: Any = self.input
        if isinstance(kind, (Number, Count)):
            self.scale = SliderScale.of(kind, float(default), most)
            self.row = pn.Column(self.input, **TIGHT)
        self._place_sliders()

    @property
    def text(self) -> str:
        """The value as typed."""
        return str(self.input.value).strip()

    @text.setter
    def text(self, text: str) -> None:
        with self._quietly():
            if isinstance(self.input, pn.widgets.Select) and text not in self.input.options:
                self.input.options = [*self.input.options, text]
            self.input.value = text
            self._place_sliders()

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        before, self.quiet = self.quiet, True
        yield
        self.quiet = before

    @property
    def numbers(self) -> list[float]:
        """The value as numbers, one per class; empty if what is typed is not a number (yet)."""
        try:
            return [
                float(self.kind.check(self.name, self.kind.parse(self.name, part)))
                for part in self.text.split(",")
            ]
        except InputError:
            return []

    def write(self, numbers: list[float]) -> str:
        """Numbers as they are typed."""
        whole = isinstance(self.kind, Count)
        return ",".join(str(int(n)) if whole else self.kind.text(n) for n in numbers)

    def _place_sliders(self) -> None:
        """Show one slider for each number, at its position."""
        if self.scale is None or not (numbers := self.numbers):
            return
        self.scale = self.scale.including(*numbers)
        while len(self.sliders) > len(numbers):
            self.row.remove(self.sliders.pop())
        while len(self.sliders) < len(numbers):
            slider = PromptSlider(
                start=0,
                end=POSITIONS,
                value=0,
                show_value=False,
                tooltips=False,
                sizing_mode="stretch_width",
                margin=(0, 16, 2, 16),
                css_classes=["slider"],
            )
            slider.param.watch(self._moved, "value")
            self.sliders.append(slider)
            self.row.append(slider)
        with self._quietly():
            for slider, number in zip(self.sliders, numbers, strict=True):
                slider.value = self.scale.position(number)

    def _typed(self, event: Any) -> None:
        if not self.quiet:
            self._place_sliders()
            self.on_change()

    def _moved(self, event: Any) -> None:
        if self.quiet or self.scale is None:
            return
        numbers = self.numbers
        place = next(i for i, slider in enumerate(self.sliders) if slider is event.obj)
        if place < len(numbers) and self.scale.position(numbers[place]) == event.new:
            return
        numbers[place] = self.scale.value(event.new)
        with self._quietly():
            self.input.value = self.write(numbers)
        self.on_change()


class Controls:
    """All controls of a setting: `texts` reads them, `show` sets them, `on_change` is called."""

    def __init__(self, limits: Limits, texts: Mapping[str, str], on_change: Callable[[], None]):
        self.limits, self.on_change = limits, on_change
        self.quiet = False
        self.stimulus, self.varied, self.network = (
            pn.widgets.Select(label=label, options=options, description=help, **WIDE)
            for label, options, help in (
                ("stimulus", safe_names("stimulus"), "the distribution of the data"),
                ("classes differ in", [], "one value per class, label 0 first"),
                ("network", safe_names("network"), "what learns"),
            )
        )
        self.boxes = {name: pn.Column(**TIGHT) for name in ("data", "network", "training", "rare")}
        self.fields: dict[str, FieldControl] = {}
        self.folded: dict[str, str] = {}  # texts of rare fields that have no control yet
        self.owners: list[Any] = []  # classes whose fields are shown
        self.rare = pn.Card(
            self.boxes["rare"], title="More", collapsed=True, sizing_mode="stretch_width", margin=8
        )
        parts: list[Any] = []
        for title, *controls in (
            ("Data", self.stimulus, self.varied, self.boxes["data"]),
            ("Network", self.network, self.boxes["network"]),
            ("Training", self.boxes["training"], self.rare),
        ):
            heading = f"<h3>{title}</h3>"
            parts += [pn.pane.HTML(heading, margin=(6, 8, 0, 8), css_classes=["part"]), *controls]
        self.panel = pn.Column(*parts, **TIGHT)
        self.show(texts)
        self.stimulus.param.watch(self._stimulus_changed, "value")
        self.network.param.watch(self._network_changed, "value")
        self.varied.param.watch(self._varied_changed, "value")
        self.rare.param.watch(self._unfolded, "collapsed")

    @property
    def texts(self) -> dict[str, str]:
        """What the controls say; fields at their defaults are left out."""
        names = {"stimulus": self.stimulus.value}
        if self.network.value != DEFAULT_NETWORK:
            names["network"] = self.network.value
        changed = {
            name: control.text
            for name, control in self.fields.items()
            if control.text != control.default
        }
        return names | self.folded | changed

    def show(self, texts: Mapping[str, str]) -> None:
        """Set every control; `on_change` is not called."""
        with self._quietly():
            self.stimulus.value = texts.get("stimulus", "nlgp")
            self.network.value = texts.get("network", DEFAULT_NETWORK)
            self._build(texts)

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        before, self.quiet = self.quiet, True
        yield
        self.quiet = before

    def _build(self, texts: Mapping[str, str]) -> None:
        """Make the controls of the chosen classes; controls whose class stays are reused."""
        stimulus: Any = find("stimulus", self.stimulus.value)
        network: Any = find("network", self.network.value)
        old_controls, old_owners = self.fields, self.owners
        self.fields, self.folded = {}, {}
        boxes: dict[str, list[Any]] = {name: [] for name in self.boxes}
        owners = {stimulus: "data", network: "network", Discrimination: "rare"}
        owners[Training] = "training"
        self.owners = list(owners)
        for owner, box in owners.items():
            defaults, typed = default_texts(owner), names_of(owner)
            for field in fields(owner):
                name = field.name
                if name not in typed:
                    continue
                text = texts.get(name, defaults[name])
                control = old_controls.get(name)
                if name in RARE_FIELDS and control is None and self.rare.collapsed:
                    if name in texts:
                        self.folded[name] = text
                    continue
                if control is None or owner not in old_owners or control.default != defaults[name]:
                    most = self._largest(name, owner)
                    control = FieldControl(field, defaults[name], text, most, self._changed)
                elif control.text != text:
                    control.text = text
                self.fields[name] = control
                boxes["rare" if name in RARE_FIELDS else box].append(control.row)
        for name, rows in boxes.items():
            if self.boxes[name].objects != rows:
                self.boxes[name].objects = rows
        names = names_of(stimulus)
        options = [n for n, control in self.fields.items() if n in names and may_vary(control.kind)]
        differing = [name for name in options if "," in self.fields[name].text]
        with self._quietly():
            self.varied.options = options
            self.varied.value = differing[0] if differing else None

    def _rebuild(self) -> None:
        """Make the controls anew; texts of fields that the new classes have too are kept."""
        with self._quietly():
            self._build(self.texts)

    def _largest(self, name: str, owner: Any) -> float:
        """The largest value that a slider offers."""
        limits = self.limits
        known = {"hidden": limits.neurons, "leaves": 1000}
        if owner is Training:
            known = {
                "members": limits.members,
                "steps": limits.steps,
                "batch": limits.batch,
                "every": 1000,
                "evaluate": limits.batch,
            }
        return float(known.get(name, math.inf))

    def _changed(self) -> None:
        if not self.quiet:
            self.on_change()

    def _stimulus_changed(self, event: Any) -> None:
        if self.quiet:
            return
        self._rebuild()
        if self.varied.value is None:  # the classes must differ in something
            self._split(self.varied.options[0])
        self._changed()

    def _network_changed(self, event: Any) -> None:
        if not self.quiet:
            self._rebuild()
            self._changed()

    def _unfolded(self, event: Any) -> None:
        self._rebuild()

    def _varied_changed(self, event: Any) -> None:
        """The classes differ in another number: the one before takes its last value for all."""
        if self.quiet or event.new is None:
            return
        for name in self.varied.options:
            control = self.fields[name]
            if name != event.new and "," in control.text:
                control.text = control.text.rsplit(",", 1)[1]
        self._split(event.new)
        self._changed()

    def _split(self, name: str) -> None:
        """Give the classes different values of a field: a third of it and itself."""
        control = self.fields[name]
        number = (control.numbers or [float(control.default)])[0]
        other = float(f"{number / 3 if number > 0 else number + 1:.3g}")
        if isinstance(control.kind, Count):
            low = control.kind.low
            other = max(low, round(number / 2)) if number > low else number + 1
        control.text = control.write(sorted((other, number)))
        with self._quietly():
            self.varied.value = name


def safe_names(family: str) -> list[str]:
    """The classes of a family that a visitor may ask for."""
    return [name for name, cls in registered(family).items() if is_safe(cls)]
