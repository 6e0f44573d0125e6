"""Write docs/errata.md with the numbers its tests measure: `make errata`."""

import functools
import math
import re
from pathlib import Path

from . import confirmed  # noqa: F401  (adds its rows to the sources)
from .note1 import NOTE1
from .note2 import NOTE2
from .note3 import NOTE3
from .note4 import NOTE4
from .paper import PAPER

SOURCES = PAPER, NOTE1, NOTE2, NOTE3, NOTE4
PAGE = Path(__file__).parents[2] / "docs" / "errata.md"

HEAD = r"""# Errata

What the paper and four working notes behind it print, where that differs from what is right, and how the two were told
apart. Written by `make errata`; the tests in `tests/errata` measure every row, ask that the printed version fails and
that the right one holds, and compare this page with what they measured.

**The conclusions of the paper are unaffected**, but for one count (§4.2) that is not reproduced. Most rows are factors,
signs and indices of the kind that every long calculation collects, and the working notes were never meant for print.
They are listed because the library had to decide each of them, and so that nobody need find them again.

How to read a row. *Measured* says what was compared with an independent reference (enumeration, quadrature, finite
differences of the loss, integration of the gradient, or draws), and how far each version is from it: as a part of the
size of the reference (in %, or so many times it), as it is where a plain number stands, or in standard errors (σ) of
draws. "By less than" is the accuracy asked of the right version, which is often more exact. The right version is the
library's own wherever the library has it. Fields and data are random, from fixed seeds: another field gives another
size of the error, and the same verdict.

Symbols: $\Sigma_y$ covariance of class $y$, $\lambda_y$ its eigenvalues,
$f(w)=\mathrm E[\mathbf 1(\langle w,X\rangle\ge0)X\mid Y=1]$, $s_y=\sqrt{w^\top\Sigma_yw}$, $q=s^2$,
$\rho_{ij}=w_i^\top\Sigma w_j$, $\gamma=\rho_{1k}/\sqrt{\rho_{11}\rho_{kk}}$. The loss of the paper and of the library
is $\mathrm E(Y-\hat y)^2$, that of the notes half of it.
"""

CONFIRMED = """## Right as printed

Checked in the same way, and found right. Errors are those of the printed form.

| source | equation | measured |
|---|---|---|
"""

SHEET = """## Where the corrections were corrected

The rows come from a formula sheet made before this library. Six of its statements needed care:

- Eq. (2) of the paper: the sheet sets −0.607 against +0.604. The first is the correlation of neighbors on 12 sites, the
  second on 40; on one ring the two signs give ∓0.607 (12 sites) or ∓0.604 (40).
- Note 3 (5): the sheet's ¼[σ(|z| + b) − 1] holds for negative biases only, those of the localized population; for the
  oscillatory one, with positive biases, it is ¼[1 + σ(b − |z|)].
- Note 1 (54): the sheet holds that $e^C>0$ cannot start below the end. It can, with eigenvectors of the right signs;
  what is wrong is the missing $1/K$, and the $t$ in $w(\\infty)$.
- Note 4 (63), (76): the sheet's 0.862 and 0.757 are 0.868 and 0.760, by quadrature and by the formula it gives.
- Note 2, $g\\sim x^{-1/2}$, and Proposition 3.3 of the paper are not wrong; they are sharpened.
- Sizes of errors that the sheet quotes (184 % to 1090 %, 37 %, 499 %, …) belong to fields that it does not give; those
  above are of the fields in the tests. The counts of peaks in §4.2 are of other starts than its 28 and 38 of 40.
"""


@functools.cache
def measured(row):
    """What a row measures, once."""
    return row.measure()


def power(value):
    """A power of ten, as mathematics."""
    return f"$10^{{{round(math.log10(value))}}}$"


def amount(value, unit):
    """An error with three digits, in words."""
    if unit == "σ":
        return f"{value:.3g} σ"
    if unit == "absolute":
        return f"{value:.3g}"
    if value < 10:
        return f"{100 * value:.3g} %"
    return f"{float(f'{value:.2g}'):,.0f} times its size".replace(",", " ")


def result(found):
    """The two errors of a row."""
    drawn = found.unit == "σ" or found.within > 1e-3
    right = (
        f"by {amount(found.right, found.unit)}" if drawn else f"by less than {power(found.within)}"
    )
    if found.printed is None:
        return f"off {right}"
    return f"printed off by **{amount(found.printed, found.unit)}**, right {right}"


def line(*cells):
    """One line of a table."""
    # A bar or a line break would end the cell; some readers take a backslash before punctuation for
    # markdown's own.
    assert not any(re.search(r"[|\n]|\\[^a-zA-Z]", cell) for cell in cells), cells
    return "| " + " | ".join(cells) + " |\n"


def render():
    """The page."""
    parts = [HEAD]
    for source in SOURCES:
        head = "| equation | printed | right | measured |\n|---|---|---|---|\n"
        parts.append(f"\n## {source.name}\n\n{source.about}\n\n{head}")
        for row in source.errata:
            actual = row.measure and measured(row)
            says = f"{actual.what}: {result(actual)}." if actual else "By reading."
            parts.append(line(row.equation, row.printed, row.right, f"{says} {row.note}".strip()))
    parts.append("\n" + CONFIRMED)
    for source in SOURCES:
        for row in source.confirmed:
            actual = measured(row)
            parts.append(
                line(
                    source.name.partition(" (")[0],
                    row.equations,
                    f"{actual.what}: {result(actual)}",
                )
            )
    parts.append("\n" + SHEET)
    return "".join(parts)


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    PAGE.write_text(render(), encoding="utf-8")
    counts = (
        sum(len(getattr(source, kind)) for source in SOURCES) for kind in ("errata", "confirmed")
    )
    print("{}: {} errata, {} equations confirmed".format(PAGE.name, *counts))
