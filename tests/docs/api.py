"""What is public: the names that the rooms offer, and the page of the reference on which each
stands.
"""

import importlib
import inspect

# Rooms that export what they offer, and modules that are rooms themselves.
PAGES = {
    "stimuli": ["stimuli", "stimuli.preprocess"],
    "marginals": ["marginals"],
    "lattice": ["lattice"],
    "tasks": ["tasks", "data"],
    "networks": ["networks", "networks.gates"],
    "training": ["training", "trajectory"],
    "theory": ["theory"],
    "analysis": ["analysis"],
    "baselines": ["baselines"],
    "experiments": ["experiments"],
    "store": ["store"],
    "plots": ["plots"],
    "figures": ["figures", "figures.make", "figures.report"],
    "app": ["app"],
    "cli": ["cli"],
}
# Found by other ways than by a room.
ALSO = {
    "tasks": [
        "localfields.from_json",
        "localfields.InputError",
        "localfields.TrainingInterrupted",
        "localfields.fields",
    ],
    "app": [
        "localfields.app.server.serve",
        "localfields.app.presets.presets",
        "localfields.app.limits.Limits",
    ],
}


def public_names(room):
    """Full names of what a room offers: what a package exports and a module defines."""
    module = importlib.import_module(f"localfields.{room}")
    if hasattr(module, "__path__") and room not in ("cli", "app"):
        own = f"{module.__name__}."
        exported = [
            name
            for name, value in vars(module).items()
            if _offered(name, value) and f"{value.__module__}.".startswith(own)
        ]
        later = list(getattr(module, "_later", ()))
        return [f"{module.__name__}.{name}" for name in (*exported, *later)]
    return _defined(module)


def _offered(name, value):
    return not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))


def _defined(module):
    result = [
        name
        for name, value in vars(module).items()
        if _offered(name, value) and value.__module__ == module.__name__
    ]
    return [f"{module.__name__}.{name}" for name in result]


def all_names():
    """Names by page."""
    return {
        page: [name for room in rooms for name in public_names(room)] + ALSO.get(page, [])
        for page, rooms in PAGES.items()
    }


def documented_as(name):
    """The name for the reference: where a function is called as the file it stands in, the
    longer one.
    """
    value = resolve(name)
    place = getattr(value, "__module__", "")
    return f"{place}.{value.__name__}" if place == name else name


def resolve(name):
    """The object of a full name."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        return importlib.import_module(name)
