"""The controls of the explorer, made from the fields of the classes they set: a new stimulus brings its own.

Every field has its text, as it is typed at the command line. Numbers have sliders besides, one a class where the
classes differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel as pn

from .._spec import Choice, Count, Nested, Number, fields, find, registered
from ..errors import InputError
from ..experiments import Training
from ..experiments.texts import DEFAULT_NETWORK, default_texts, may_vary, names_of
from ..tasks import Discrimination
from .limits import Limits, is_plain
from .scale import POSITIONS, Scale, scale_of

# What one rarely changes is folded away.
RARE = {
    "kernel",
    "labels",
    "proportions",
    "loss",
    "l1",
    "l2",
    "init",
    "optimizer",
    "stop_tol",
    "every",
    "evaluate",
    "quantities",
}


class Slider(pn.widgets.IntSlider):
    """A slider that tells at once: Panel waits 50 milliseconds, a quarter of what an answer may take."""

    _debounce = 5


class FieldControl:
    """The text of one field, and its sliders if it is a number."""

    def __init__(
        self,
        name: str,
        field: Any,
        default: str,
        text: str,
        most: float,
        on_change: Callable[[], None],
    ):
        self.name, self.kind, self.default, self.on_change = name, field.kind, default, on_change
        label = f"{name.replace('_', ' ')}  {field.symbol}".strip()
        self.quiet = False
        self.scale: Scale | None = None
        self.sliders: list[Slider] = []
        if isinstance(self.kind, Choice):
            self.input: Any = pn.widgets.Select(
                label=label, options=list(self.kind.names), value=text
            )
        elif isinstance(self.kind, Nested):
            names = [one for one, cls in registered(self.kind.family).items() if is_plain(cls)]
            self.input = pn.widgets.Select(
                label=label, options=list(dict.fromkeys([*names, text])), value=text
            )
        else:
            self.input = pn.widgets.TextInput(label=label, value=text)
        self.input.description = field.help
        self.input.param.update(sizing_mode="stretch_width", margin=(4, 8, 0, 8))
        self.input.param.watch(self._typed, "value")
        if isinstance(self.kind, (Number, Count)):
            self.scale = scale_of(self.kind, float(default), most)
            self.row: Any = pn.Column(self.input, sizing_mode="stretch_width", margin=0)
        else:
            self.row = self.input
        self._place_sliders()

    @property
    def text(self) -> str:
        """As it is typed."""
        return str(self.input.value).strip()

    @text.setter
    def text(self, text: str) -> None:
        self.quiet = True
        if isinstance(self.input, pn.widgets.Select) and text not in self.input.options:
            self.input.options = [*self.input.options, text]
        self.input.value = text
        self._place_sliders()
        self.quiet = False

    def _numbers(self) -> list[float]:
        try:
            return [
                float(self.kind.check(self.name, self.kind.parse(self.name, one)))
                for one in self.text.split(",")
            ]
        except InputError:
            return []

    def _place_sliders(self) -> None:
        """As many sliders as there are numbers, each at its own."""
        if self.scale is None:
            return
        numbers = self._numbers()
        if not numbers:  # what is typed is no number (yet): the page says so, the sliders stay
            return
        scale = self.scale
        for one in numbers:
            scale = scale.holding(one)
        self.scale = scale
        while len(self.sliders) > len(numbers):
            self.row.remove(self.sliders.pop())
        while len(self.sliders) < len(numbers):
            slider = Slider(
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
        held, self.quiet = self.quiet, True
        for slider, one in zip(self.sliders, numbers, strict=True):
            slider.value = scale.position(one)
        self.quiet = held

    def _typed(self, event: Any) -> None:
        if not self.quiet:
            self._place_sliders()
            self.on_change()

    def _moved(self, event: Any) -> None:
        if self.quiet or self.scale is None:
            return
        numbers = self._numbers()
        place = next(index for index, slider in enumerate(self.sliders) if slider is event.obj)
        if place < len(numbers) and self.scale.position(numbers[place]) == event.new:
            return
        numbers[place] = self.scale.value(event.new)
        self.quiet = True
        self.input.value = ",".join(self._write(one) for one in numbers)
        self.quiet = False
        self.on_change()

    def _write(self, value: float) -> str:
        return str(int(value)) if isinstance(self.kind, Count) else self.kind.text(value)


class Controls:
    """All controls of a setting. `texts` reads them, `show` sets them, `on_change` is told of every change."""

    def __init__(self, limits: Limits, texts: Mapping[str, str], on_change: Callable[[], None]):
        self.limits, self.on_change = limits, on_change
        self.quiet = False
        stimuli = [name for name, cls in registered("stimulus").items() if is_plain(cls)]
        networks = [name for name, cls in registered("network").items() if is_plain(cls)]
        more = {"sizing_mode": "stretch_width", "margin": (4, 8, 0, 8)}
        self.stimulus = pn.widgets.Select(
            label="stimulus", options=stimuli, description="the law of the data", **more
        )
        self.differ = pn.widgets.Select(
            label="classes differ in", description="one value a class, label 0 first", **more
        )
        self.network = pn.widgets.Select(
            label="network", options=networks, description="what learns", **more
        )
        self.boxes = {
            name: pn.Column(sizing_mode="stretch_width", margin=0)
            for name in ("data", "net", "run", "rare")
        }
        self.fields: dict[str, FieldControl] = {}
        self.folded: dict[
            str, str
        ] = {}  # texts of rare fields whose controls were not asked for yet
        self.owners: list[Any] = []
        self.rare = pn.Card(
            self.boxes["rare"], title="More", collapsed=True, sizing_mode="stretch_width", margin=8
        )
        self.panel = pn.Column(
            _title("Data"),
            self.stimulus,
            self.differ,
            self.boxes["data"],
            _title("Network"),
            self.network,
            self.boxes["net"],
            _title("Training"),
            self.boxes["run"],
            self.rare,
            sizing_mode="stretch_width",
            margin=0,
        )
        self.show(texts)
        self.stimulus.param.watch(self._other_stimulus, "value")
        self.network.param.watch(self._other_network, "value")
        self.differ.param.watch(self._other_difference, "value")
        self.rare.param.watch(self._unfold, "collapsed")

    @property
    def texts(self) -> dict[str, str]:
        """What the controls say; fields at their defaults are left out."""
        found = {"stimulus": self.stimulus.value}
        if self.network.value != DEFAULT_NETWORK:
            found["network"] = self.network.value
        return (
            found
            | self.folded
            | {name: one.text for name, one in self.fields.items() if one.text != one.default}
        )

    def show(self, texts: Mapping[str, str]) -> None:
        """Set every control; `on_change` is not told."""
        self.quiet = True
        self.stimulus.value = texts.get("stimulus", "nlgp")
        self.network.value = texts.get("network", DEFAULT_NETWORK)
        self._make(
            {name: text for name, text in texts.items() if name not in ("stimulus", "network")}
        )
        self.quiet = False

    def _make(self, texts: Mapping[str, str]) -> None:
        """Controls for the fields of the chosen classes; those that stay are kept."""
        stimulus, network = (
            find("stimulus", self.stimulus.value),
            find("network", self.network.value),
        )
        kept = self.fields
        before, self.owners = self.owners, [stimulus, network, Discrimination, Training]
        made: dict[str, FieldControl] = {}
        self.folded = {}
        boxes: dict[str, list[Any]] = {name: [] for name in self.boxes}
        for owner, box in zip(self.owners, ("data", "net", "rare", "run"), strict=True):
            defaults = default_texts(owner)
            for field in fields(owner):
                name = field.name
                if name not in names_of(owner):
                    continue
                one = kept.get(name)
                if name in RARE and one is None and self.rare.collapsed:
                    if name in texts:
                        self.folded[name] = texts[name]
                    continue
                if one is not None and owner in before and one.default == defaults[name]:
                    text = texts.get(name, defaults[name])
                    if one.text != text:
                        one.text = text
                else:
                    text = texts.get(name, defaults[name])
                    one = FieldControl(
                        name, field, defaults[name], text, self._most(name, owner), self._changed
                    )
                made[name] = one
                boxes["rare" if name in RARE else box].append(one.row)
        self.fields = made
        for name, rows in boxes.items():
            if self.boxes[name].objects != rows:
                self.boxes[name].objects = rows
        varied = [
            name for name, one in made.items() if name in names_of(stimulus) and may_vary(one.kind)
        ]
        differing = [name for name in varied if "," in made[name].text]
        held, self.quiet = self.quiet, True
        self.differ.options = varied
        self.differ.value = differing[0] if differing else None
        self.quiet = held

    def _unfold(self, event: Any) -> None:
        held, self.quiet = self.quiet, True
        self._make_again()
        self.quiet = held

    def _most(self, name: str, owner: Any) -> float:
        known = {"hidden": self.limits.neurons, "leaves": 1000}
        if owner is Training:
            known = {
                "members": self.limits.members,
                "steps": self.limits.steps,
                "batch": self.limits.batch,
            }
            known |= {"every": 1000, "evaluate": self.limits.batch}
        return float(known.get(name, float("inf")))

    def _changed(self) -> None:
        if not self.quiet:
            self.on_change()

    def _other_stimulus(self, event: Any) -> None:
        """Another law: fields that both have keep their texts, and the classes differ again."""
        if self.quiet:
            return
        self.quiet = True
        self._make_again()
        if self.differ.value is None:
            self._split(self.differ.options[0])
        self.quiet = False
        self._changed()

    def _make_again(self) -> None:
        """Controls for other classes; texts of fields that they have as well are kept."""
        owners = (
            find("stimulus", self.stimulus.value),
            find("network", self.network.value),
            Discrimination,
            Training,
        )
        known = {name for owner in owners for name in names_of(owner)}
        self._make({name: text for name, text in self.texts.items() if name in known})

    def _split(self, name: str) -> None:
        """Give the classes different values of a field: a third of it and itself."""
        one = self.fields[name]
        number = one._numbers()[0] if one._numbers() else float(one.default)
        other = number / 3 if number > 0 else number + 1
        if isinstance(one.kind, Count):
            other = max(one.kind.low, round(number / 2)) if number > one.kind.low else number + 1
        one.text = ",".join(one._write(value) for value in sorted((float(f"{other:.3g}"), number)))
        self.differ.value = name

    def _other_network(self, event: Any) -> None:
        if self.quiet:
            return
        self.quiet = True
        self._make_again()
        self.quiet = False
        self._changed()

    def _other_difference(self, event: Any) -> None:
        """The classes differ in another number: the one before takes its last value for all."""
        if self.quiet or event.new is None:
            return
        self.quiet = True
        for name, one in self.fields.items():
            if name in self.differ.options and name != event.new and "," in one.text:
                one.text = one.text.rsplit(",", 1)[1]
        self._split(event.new)
        self.quiet = False
        self._changed()


def _title(words: str) -> pn.pane.HTML:
    return pn.pane.HTML(f"<h3>{words}</h3>", margin=(6, 8, 0, 8), css_classes=["part"])
