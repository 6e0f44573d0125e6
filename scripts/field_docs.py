"""For the documentation: document the fields of a class by their declarations."""

import importlib
import re
from typing import Any

import griffe


class FieldDocs(griffe.Extension):
    """Give each declared field its symbol and meaning as a docstring, and its default as value."""

    def __init__(self) -> None:
        self.classes: list[griffe.Class] = []

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """A section of examples is known to the reader of docstrings by its plural alone."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )

    def on_class_instance(self, *, node: Any, cls: griffe.Class, agent: Any, **kwargs: Any) -> None:
        """Remember the class."""
        self.classes.append(cls)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """When the whole package is read, its classes are asked for what they declare."""
        from localfields._spec import Spec, fields

        for one in self.classes:
            real = getattr(importlib.import_module(one.module.path), one.name, None)
            if not (isinstance(real, type) and issubclass(real, Spec)):
                continue
            for field in fields(real):
                attribute = one.members.get(field.name)
                if isinstance(attribute, griffe.Attribute) and not attribute.docstring:
                    words = f"{field.symbol}: {field.help}" if field.symbol else field.help
                    attribute.docstring = griffe.Docstring(words, parent=attribute)
                    attribute.value = (
                        field.kind.text(field.default) or None
                    )  # not the declaration, a call
