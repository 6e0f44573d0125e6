"""Every public name has a docstring and a place in the reference; a page of the reference names
nothing else.
"""

import inspect
import re

import pytest

import localfields as lf
from docs.api import all_names, documented_as, resolve
from docs.pages import ROOT

NAMES = all_names()


@pytest.mark.parametrize("page", NAMES)
def test_the_reference_is_complete(page):
    listed = re.findall(
        r"^::: (\S+)$", (ROOT / "docs" / "reference" / f"{page}.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted({documented_as(name) for name in NAMES[page]})


def test_what_the_package_offers_is_there():
    documented = {id(resolve(name)) for names in NAMES.values() for name in names}
    offered = [name for name in lf.__all__ if name not in (*lf._MODULES, "__version__")]
    assert offered and not [name for name in offered if id(getattr(lf, name)) not in documented]


def members(cls):
    """Public methods and properties that a class itself defines."""
    for name, value in vars(cls).items():
        value = getattr(value, "__func__", value)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            yield f"{cls.__name__}.{name}", value


def undocumented(name):
    value = resolve(name)
    result = [] if (inspect.getdoc(value) or "").strip() else [name]
    if inspect.isclass(value):
        result += [name for name, one in members(value) if not (inspect.getdoc(one) or "").strip()]
    return result


def test_everything_public_is_documented():
    assert sum(map(len, NAMES.values())) > 200
    assert not [one for names in NAMES.values() for name in names for one in undocumented(name)]


def test_every_argument_that_is_described_exists():
    """A description of an argument that is gone, or was renamed, is worse than none."""
    for name in (name for names in NAMES.values() for name in names):
        value = resolve(name)
        if not inspect.isfunction(value):
            continue
        section = re.search(r"\nArgs:\n((?:    .*\n?|\n)+)", inspect.getdoc(value) or "")
        if section is None:
            continue
        documented = set(re.findall(r"^    \*{0,2}(\w+):", section[1], re.MULTILINE))
        known = set(inspect.signature(value).parameters)
        assert documented <= known, f"{name} describes {documented - known}"
        assert known - documented <= {"self"}, f"{name} does not describe {known - documented}"
