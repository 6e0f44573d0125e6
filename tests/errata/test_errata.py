"""Every erratum: the printed version fails, the right one holds; and the page says what was
measured.
"""

import pytest

from .write import PAGE, SOURCES, measured, render


def rows(kind):
    """Rows that are measured, named by source and equation."""
    result = [
        (source.name, row) for source in SOURCES for row in getattr(source, kind) if row.measure
    ]
    return [pytest.param(row, id=f"{name}-{row.measure.__name__}") for name, row in result]


@pytest.mark.parametrize("row", rows("errata"))
def test_the_printed_version_fails_and_the_right_one_holds(row):
    result = measured(row)
    assert result.holds, result
    # Where the source stops before a result there is nothing that could fail.
    assert result.fails or (result.printed is None and row.printed.startswith("left")), result


@pytest.mark.parametrize("row", rows("confirmed"))
def test_what_is_right_as_printed(row):
    result = measured(row)
    assert result.holds and result.printed is None, result


def test_only_a_cross_reference_is_left_to_reading():
    unmeasured = [
        row.equation for source in SOURCES for row in source.errata if row.measure is None
    ]
    assert unmeasured == ["§3.2, footnote 3"]


def test_the_page_is_what_was_measured():
    assert PAGE.read_text(encoding="utf-8") == render(), (
        "docs/errata.md is out of date: run `make errata`"
    )
