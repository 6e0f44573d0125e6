"""Imports go down the layers of the design; importing the package touches nothing; the public
API is documented.
"""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import localfields as lf

from .imports import LAYERS, PACKAGE, cycle, homeless, imports, layer_of, sources, upward

ROOT = Path(__file__).parents[2]
MODULES = sources(ROOT / "src" / PACKAGE)
HEAVY = (
    "matplotlib",
    "panel",
    "bokeh",
    "dask",
    "distributed",
    "sklearn",
    "rich",
    "playwright",
    "IPython",
)


def package(**texts):
    """A made-up package: `package(stimuli__base="…")` has a module `localfields.stimuli.base`."""
    made = {
        PACKAGE: "",
        **{f"{PACKAGE}.{name.replace('__', '.')}": text for name, text in texts.items()},
    }
    for name in list(made):
        for end in range(1, name.count(".") + 1):
            made.setdefault(name.rsplit(".", end)[0], "")
    return made


def test_every_module_has_a_layer():
    lost = homeless(MODULES)
    assert not lost, (
        f"in no layer: {', '.join(lost)}. Say in the design, and in `LAYERS` here, where they belong."
    )
    assert len(MODULES) > 20 and {layer_of(name) for name in MODULES} >= {0, 1, 6, 7}


def test_imports_go_down():
    assert len(imports(MODULES)) > 50
    assert upward(MODULES) == []


def test_no_cycle():
    assert cycle(MODULES) == []


@pytest.mark.parametrize(
    ("texts", "caught"),
    [
        ({"lattice": "from .stimuli import NLGP"}, True),
        ({"lattice": "from . import stimuli"}, True),
        ({"lattice": "import localfields.stimuli.base as base"}, True),
        ({"lattice": "from localfields import stimuli"}, True),
        ({"lattice": "from localfields.stimuli import NLGP"}, True),
        ({"stimuli__base": "def f():\n    from ..plots import stimulus"}, True),
        ({"stimuli__base": "class A:\n    from ..plots import stimulus"}, True),
        (
            {"stimuli__base": "try:\n    from ..cli import main\nexcept ImportError:\n    pass"},
            True,
        ),
        ({"theory__flow": "from ..training import train"}, True),
        ({"training__engine": "from ..theory.flow import solve"}, True),
        ({"stimuli__base": "from ..networks import Network"}, True),
        ({"plots__stimulus": "from ..figures import fig2"}, True),
        ({"stimuli": "from .base import A", "stimuli__base": ""}, False),
        ({"marginals__base": "from ..lattice import root\nfrom .._spec import Spec"}, False),
        ({"figures__fig2": "from ..plots import stimulus"}, False),
        ({"cli__sample": "from .. import stimuli, __version__"}, False),
        (
            {
                "stimuli__base": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tasks import T"
            },
            False,
        ),
        ({"stimuli__base": "import stimuli_of_others\nfrom plots import curve"}, False),
    ],
)
def test_upward_imports_are_caught(texts, caught):
    assert bool(upward(package(**texts))) is caught


@pytest.mark.parametrize(
    ("texts", "caught"),
    [
        ({"_spec": "from .lattice import row", "lattice": "from ._spec import Spec"}, True),
        (
            {
                "stimuli__a": "from .b import B",
                "stimuli__b": "from . import c",
                "stimuli__c": "from .a import A",
            },
            True,
        ),
        (
            {
                "_spec": "from .lattice import row",
                "lattice": "def f():\n    from ._spec import Spec",
            },
            False,
        ),
        (
            {
                "_spec": "from .lattice import row",
                "lattice": "import typing as t\nif t.TYPE_CHECKING:\n    import localfields._spec",
            },
            False,
        ),
        (
            {"stimuli__a": "from .b import B", "stimuli__c": "from .b import B\nfrom .a import A"},
            False,
        ),
    ],
)
def test_cycles_are_caught(texts, caught):
    assert bool(cycle(package(**texts))) is caught


def test_a_room_of_no_layer_is_caught():
    assert homeless(package(helpers="", stimuli__base="")) == [f"{PACKAGE}.helpers"]
    assert upward(package(stimuli__base="from ..helpers import x", helpers="")) != []


def test_no_room_is_in_two_layers():
    rooms = [room for layer in LAYERS for room in layer]
    assert len(rooms) == len(set(rooms))


# -- importing touches nothing ---------------------------------------------------------------------


def fresh(program):
    """What a program prints last (as JSON), and everything else that it printed."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *before, last = done.stdout.splitlines()
    return json.loads(last), "\n".join(before) + done.stderr


ROOMS = sorted({*lf.__all__} - {"__version__"})


def test_importing_the_package_loads_no_library():
    loaded, printed = fresh("import localfields, sys, json; print(json.dumps(sorted(sys.modules)))")
    assert printed == ""
    assert not {"jax", "numpy", "scipy", *HEAVY} & set(loaded)


def test_using_any_public_name_starts_no_backend_and_changes_no_setting():
    program = f"""
import json, sys
import jax
from jax._src import xla_bridge
before = dict(jax.config.values)
import localfields
told = {{}}
for name in {ROOMS}:
    getattr(localfields, name)
    changed = [key for key, value in jax.config.values.items() if before.get(key, value) != value]
    loaded = sorted(set({HEAVY}) & set(sys.modules))
    if changed or loaded or xla_bridge._backends:
        told[name] = [changed, loaded, list(xla_bridge._backends)]
print(json.dumps(told))
"""
    assert "stimuli" in ROOMS
    assert fresh(program) == ({}, "")


def test_the_probe_for_backends_and_settings_has_power():
    program = """
import json, jax
from jax._src import xla_bridge
before = dict(jax.config.values)
jax.config.update("jax_enable_x64", True)
jax.numpy.zeros(1)
changed = [key for key, value in jax.config.values.items() if before.get(key, value) != value]
print(json.dumps([changed, list(xla_bridge._backends)]))
"""
    (changed, backends), _ = fresh(program)
    assert changed == ["jax_enable_x64"] and "cpu" in backends


# -- what a reader sees ----------------------------------------------------------------------------


def public(room):
    """The public classes and functions of a room that are its own, and the public methods of
    those classes.
    """
    for name, value in vars(room).items():
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not value.__module__.startswith(PACKAGE):
            continue
        yield f"{room.__name__}.{name}", value
        for method, function in vars(value).items() if inspect.isclass(value) else ():
            if not method.startswith("_") and (
                callable(function) or isinstance(function, (property, classmethod))
            ):
                yield f"{room.__name__}.{name}.{method}", function


def is_documented(value):
    text = inspect.getdoc(value) or ""
    # A dataclass without a docstring is given its signature for one.
    return bool(text) and not text.startswith(f"{getattr(value, '__name__', '')}(")


@pytest.mark.parametrize("name", ["lattice", "marginals", "stimuli"])
def test_public_names_are_documented(name):
    result = dict(public(getattr(lf, name)))
    assert len(result) > 15
    assert [label for label, value in result.items() if not is_documented(value)] == []


MACHINE = re.compile(r"(?<![\w.:/])(/(home|root|work|Users|mnt|tmp|opt|srv|scratch)/|[A-Z]:\\)")


def test_no_file_mentions_a_path_of_one_machine():
    files = [
        *ROOT.glob("src/**/*.py"),
        *filter(Path.is_file, ROOT.glob("scripts/*")),
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
    ]
    mentions = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if MACHINE.search(line)
    ]
    assert mentions == []
    assert MACHINE.search('open("/home/someone/data.npz")') and MACHINE.search("=/tmp/x")
    assert not MACHINE.search("src/work/x") and not MACHINE.search("https://example.org/home/x")
