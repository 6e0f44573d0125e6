"""`localfields reproduce`: figures, and a ledger whose numbers are computed here again, another
way.
"""

import base64
import json
import math
import os
import re
import time
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf

from localfields._files import publish
from localfields.cli import main

from .conftest import read_table, shell

FIG2 = ["claims.json", "fig2.pdf", "fig2.png", "fig2.svg", "report.html", "report.md"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The folder that `localfields reproduce fig2` writes, and what it prints."""
    here = tmp_path_factory.getbasetemp()
    # Workers side by side have folders in one: the first to come makes the report, the others wait
    # for it.
    shared = here.parent if "PYTEST_XDIST_WORKER" in os.environ else here
    folder, printed = shared / "made" / "below", shared / "printed.json"
    try:
        (shared / "claimed").mkdir()
    except FileExistsError:
        late = time.monotonic() + 180
        while not printed.exists():
            assert time.monotonic() < late, "the worker that makes the report has not come back"
            time.sleep(0.1)
    else:
        done = shell("reproduce", "fig2", "--out", folder, "--store", shared / "runs")
        publish(
            printed,
            lambda path: path.write_text(json.dumps([done.returncode, done.stderr, done.stdout])),
        )
    code, err, out = json.loads(printed.read_text())
    assert (code, err) == (0, "")
    return folder, out


def rows(folder):
    """All claims in a folder, by id."""
    plain = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    return {claim["id"]: claim for figure in plain["figures"] for claim in figure["claims"]}


@pytest.fixture(scope="module")
def ledger(report):
    return rows(report[0])


# -- the numbers, by quadrature --------------------------------------------------------------------


def integral(function, *ends):
    value, error = quad(function, *ends, epsabs=0, epsrel=1e-10, limit=500)
    assert error <= 1e-8 * abs(value)
    return value


def erf_kurtosis(gain):
    """Kurtosis of erf(gZ), by integrating over the normal density."""

    def moment(order):
        return 2 * integral(
            lambda z: erf(gain * z) ** order * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi), 0, 12
        )

    return moment(4) / moment(2) ** 2


def kur_moment(k, order, end=math.inf):
    """E|X|^order of the law with cdf ½(1 + x(1 + |x|^k)^(−1/k)), of which the density is ½(1 +
    |x|^k)^(−1/k − 1).

    Integrated in log x from 1 on, so that a slow tail is no trouble.
    """

    def log_density(log_x):
        return -(1 / k + 1) * np.logaddexp(0, k * log_x)

    inside = integral(lambda x: x**order * (1 + x**k) ** (-1 / k - 1), 0, 1)
    far = min(math.log(end), 200 / (k - order)) if k > order else math.log(end)
    return inside + integral(lambda t: math.exp((order + 1) * t + log_density(t)), 0, far)


def kur_kurtosis(k):
    return kur_moment(k, 4) / kur_moment(k, 2) ** 2


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+(?:\.\d+)?", text.replace("−", "-"))]


def test_exact_values_are_those_of_quadrature(ledger):
    crossing = brentq(lambda k: kur_kurtosis(k) - 3, 5, 7, xtol=1e-9)
    wanted = {
        "K1": [1 - 3],  # X² = 1
        "K2": [erf_kurtosis(0.01)],
        "K3": [kur_kurtosis(5)],
        "K4": [kur_kurtosis(10) - 3, kur_kurtosis(30) - 3],
        "K6": [crossing],
    }
    for name, values in wanted.items():
        # Printed to four digits: half a unit of the last, and the quadrature's own error.
        assert numbers(ledger[name]["measured"]) == pytest.approx(values, abs=0.5e-4 + 1e-7), name


def test_infinite_values_are_infinite(ledger):
    assert ledger["K5"]["measured"] == "∞, ∞"
    # The density is |x|^(−k−1)/2 far out. So E[X⁴; |X| < r] grows as log r at k = 4, and as r at k
    # = 3: no limit.
    assert kur_moment(4, 4, 1e8) - kur_moment(4, 4, 1e4) == pytest.approx(math.log(1e4), rel=1e-3)
    assert kur_moment(3, 4, 1e8) - kur_moment(3, 4, 1e4) == pytest.approx(1e8 - 1e4, rel=1e-3)


def test_quadrature_has_power():
    # A parameter 5 % wrong would show in the digits printed.
    for k in (5, 10, 30):
        assert abs(kur_kurtosis(1.05 * k) - kur_kurtosis(k)) > 1e-3


def test_claims(ledger):
    assert {name: claim["verdict"] for name, claim in ledger.items()} == {
        "K1": "reproduced",
        "K2": "reproduced",
        "K3": "differs",
        "K4": "reproduced",
        "K5": "differs",
        "K6": "reproduced",
    }
    published = {name: claim["published"] for name, claim in ledger.items()}
    assert published == {
        "K1": "−2",
        "K2": "2.99",
        "K3": "3.86",
        "K4": "−0.93, −1.17",
        "K5": "3.28, 7.66",
        "K6": "between 5.8 and 5.9",
    }
    for claim in ledger.values():
        assert all(claim[part] for part in ("statement", "reason", "how"))
        assert claim["reason"].endswith(".")


def test_verdicts_follow_from_the_numbers(ledger):
    for name, digits in (("K1", 0), ("K3", 2), ("K4", 2)):
        claim = ledger[name]
        agree = np.round(numbers(claim["measured"]), digits) == np.round(
            numbers(claim["published"]), digits
        )
        assert (claim["verdict"] == "reproduced") == agree.all(), name
    # K2 is published from samples: it agrees within two standard errors of 10 000 normal values,
    # √(24/n) each.
    assert abs(numbers(ledger["K2"]["measured"])[0] - 2.99) < 2 * math.sqrt(24 / 10_000)
    low, high = numbers(ledger["K6"]["published"])
    assert low < numbers(ledger["K6"]["measured"])[0] < high


# -- the files -------------------------------------------------------------------------------------


def test_files(report):
    folder, printed = report
    assert sorted(path.name for path in folder.iterdir()) == FIG2
    assert printed.splitlines()[-1] == f"The page: {folder / 'report.html'}"
    assert "4 of 6 published claims are reproduced" in printed
    assert all(name in printed for name in ("K1", "K6", "4.2853", "∞, ∞"))
    assert (folder / "fig2.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (folder / "fig2.svg").read_text(encoding="utf-8")


def test_the_ledger_is_printed(report, ledger):
    names = {"": "id", "claim": "statement", "published": "published", "here": "measured"}
    names |= {"verdict": "verdict"}
    expected = [{name: row[part] for name, part in names.items()} for row in ledger.values()]
    assert read_table(report[1]) == expected


def test_the_figure_shows_twelve_panels(report):
    picture = matplotlib.image.imread(report[0] / "fig2.png")[..., :3]
    assert picture.shape[0] > 800 and picture.shape[1] > 1500
    for row in np.array_split(picture, 3, axis=0):
        for panel in np.array_split(row, 4, axis=1):
            assert (np.ptp(panel, axis=2) > 0.2).mean() > 0.005  # a curve in color


class Page(HTMLParser):
    """Collects what a page refers to, and its text."""

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.rows, self.ids, self.text = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.links += [
            values[name] for name in ("src", "href", "srcset", "data", "action") if name in values
        ]
        if "id" in values:
            self.ids.append(values["id"])
            if tag == "tr":
                self.rows.append(values["id"])

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_stands_by_itself(report, ledger):
    folder, _ = report
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.rows == list(ledger)
    assert not {"script", "link", "iframe", "object", "base"} & set(page.tags)
    assert (
        "url(" not in text
        and "@import" not in text
        and "http://" not in text
        and "https://" not in text
    )
    embedded = [link for link in page.links if link.startswith("data:image/png;base64,")]
    within = [link for link in page.links if link.startswith("#")]
    assert sorted(embedded + within) == sorted(page.links) and len(embedded) == 1
    assert {link[1:] for link in within} <= set(page.ids)
    assert base64.b64decode(embedded[0].partition(",")[2]) == (folder / "fig2.png").read_bytes()
    shown = "".join(page.text)
    for claim in ledger.values():
        assert all(
            claim[part] in shown
            for part in ("statement", "published", "measured", "verdict", "reason")
        )


def test_the_same_as_markdown(report, ledger):
    folder, _ = report
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    for claim in ledger.values():
        (row,) = [line for line in lines if line.startswith(f"| {claim['id']} |")]
        assert row == "| " + " | ".join(claim[part] for part in PARTS) + " |"
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", "\n".join(lines))
    assert (folder / picture).is_file()


PARTS = ("id", "statement", "published", "measured", "verdict", "reason")


def test_a_rerun_gives_the_same_ledger(report, folder, capsys):
    # In this process, in double precision, into a folder that holds something that is no report.
    old = folder / "again"
    old.mkdir()
    (old / "claims.json").write_text("old")
    (old / "notes.txt").write_text("mine")
    main(["reproduce", "fig2", "--out", str(old), "--store", str(folder / "runs")])
    assert rows(old) == rows(report[0])
    assert sorted(path.name for path in old.iterdir()) == sorted([*FIG2, "notes.txt"])
    assert (old / "notes.txt").read_text() == "mine"
    assert "4 of 6" in capsys.readouterr().out
