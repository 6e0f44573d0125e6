"""`localfields predict` on files: classes, report and page are those of the Python call;
mistakes are one line.
"""

from __future__ import annotations

import dataclasses
import html.parser
import json

import jax
import matplotlib.image
import numpy as np
import pytest

import localfields as lf
from localfields.cli import main
from localfields.plots._pages import prediction_page


@pytest.fixture(scope="module")
def arrays():
    with jax.enable_x64(False):
        return [
            np.asarray(lf.stimuli.NLGP((12,), xi=xi, gain=3.0).sample(c, 800))
            for c, xi in enumerate((0.5, 1.2))
        ]


@pytest.fixture(scope="module")
def asked(arrays):
    task = lf.data.sources(*arrays)
    return task, lf.predict(task, starts=3, seed=5)


@pytest.fixture
def files(arrays, folder):
    """Two files, one of both with labels, and one that is no data."""
    for name, array in zip(("short", "long"), arrays, strict=True):
        np.save(f"{name}.npy", array)
    np.savez("both.npz", x=np.concatenate(arrays), labels=np.repeat([3, 7], 800))
    np.save("labels.npy", np.repeat([3, 7], 800))
    (folder / "broken.npy").write_text("no numbers")
    return folder


def same(stimulus, wanted):
    np.testing.assert_array_equal(stimulus.rows, wanted)


def test_two_files_are_two_classes_and_the_report_is_python_s(files, asked, capsys):
    task, wanted = asked
    main(
        [
            "predict",
            "short.npy",
            "long.npy",
            "--starts",
            "3",
            "--seed",
            "5",
            "--out",
            "x.json",
            "--plot",
        ]
    )
    out, err = capsys.readouterr()
    assert err == ""
    said = [line for line in str(wanted).splitlines() if len(line) < 160]
    assert all(line in out for line in said) and f"verdict            {wanted.verdict}" in out
    assert out.endswith("wrote x.json\ndrew x.png\n")
    found = json.loads(
        (files / "x.json").read_text(),
        parse_constant=lambda name: pytest.fail(f"{name} is not JSON"),
    )
    assert found["verdict"] == wanted.verdict and found["doubts"] == list(wanted.doubts)
    assert found["evidence"][1]["kurtosis"]["low"] == wanted.evidence[1].kurtosis.low
    assert found["evidence"][1]["check"]["shift"]["tries"] == wanted.evidence[1].check.shift.tries
    assert [one["sha256"] for one in (part["data"] for part in found["task"]["stimuli"])] == [
        one.data.sha256 for one in task.stimuli
    ]
    assert matplotlib.image.imread("x.png")[..., :3].std() > 0.05


def test_labels_or_blurs_make_classes_of_one_file(files, arrays, quick):
    main(["predict", "both.npz", "--classes", "labels.npy", "--symmetry", "shifts-and-signs"])
    main(
        ["predict", "long.npy", "--blur", "0,0.5,2", "--preprocess", "center", "--labels", "signs"]
    )
    main(["predict", "long.npy", "--shape", "3x4", "--loss", "absolute"])
    labelled, blurred, shaped = (task for task, _ in quick)
    for stimulus, array in zip(labelled.stimuli, arrays, strict=True):
        same(stimulus, array)
        assert stimulus.symmetry == "shifts-and-signs"
    assert len(blurred.stimuli) == 3 and blurred.labels == "signs"
    near = [np.mean(one.rows * np.roll(one.rows, 1, axis=1)) for one in blurred.stimuli]
    assert near[0] < near[1] < near[2]
    assert (shaped.shape, shaped.loss, len(shaped.stimuli)) == ((3, 4), "absolute", 2)


class Reader(html.parser.HTMLParser):
    """Tags with their addresses, and whether every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.sources = [], []

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_no_other_file(files, asked, quick, capsys):
    main(["predict", "short.npy", "long.npy", "--out", "page.html"])
    assert sorted(path.suffix for path in files.iterdir()).count(".html") == 1
    text = (files / "page.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert (
        reader.open == []
        and len(reader.sources) == 1
        and reader.sources[0].startswith("data:image/png;base64,")
    )
    for words in (
        asked[1].verdict,
        "S1, far sites",
        "S2, shifts",
        "S3, signs",
        "excess kurtosis",
        "short.npy",
    ):
        assert words in text
    assert "http" not in text


def test_text_page_and_json_are_the_rows(asked):
    """Each row that has a text is one line of the report and one cell of the page; each value is
    in the JSON.
    """
    prediction = dataclasses.replace(
        asked[1], verdict="undecided", needed=1234, advice=("try this", "and that")
    )
    rows = prediction.rows()
    texts = [line for row in rows for line in row.text.splitlines()]
    lines = str(prediction).splitlines()
    assert [line[19:] for line in lines] == texts
    page = Cells()
    page.feed(prediction_page(prediction))
    table = [row for row in rows if row.text and row.kind in ("fact", "class")]
    assert [(label, text.replace("−", "-")) for label, text in page.table] == [
        (row.label, row.text) for row in table
    ]
    assert any(text.startswith("−1.83 (99 %: −1.8") for _, text in page.table)
    assert page.items == ["try this", "and that"]
    assert page.verdict == f"undecided, leaning to {asked[1].leaning}"
    plain = prediction.to_json()
    for row in rows:
        group = plain if row.group is None else plain["evidence"][row.group]
        assert row.key in group
    assert [one["kurtosis"]["value"] for one in plain["evidence"]] == [
        one.kurtosis.value for one in prediction.evidence
    ]
    assert (plain["needed"], plain["advice"]) == (1234, ["try this", "and that"])


class Cells(html.parser.HTMLParser):
    """The table of a page, the items of its list and its verdict."""

    def __init__(self):
        super().__init__()
        self.tag, self.cells, self.items, self.verdict = "", [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tag = tag

    def handle_data(self, data):
        if self.tag in ("th", "td") and data.strip():
            self.cells.append(data)
        if self.tag == "li" and data.strip():
            self.items.append(data)
        if self.tag == "strong":
            self.verdict += data
        self.tag = ""

    @property
    def table(self):
        return list(zip(self.cells[::2], self.cells[1::2], strict=True))


def test_what_a_page_says_is_escaped(asked):
    page = prediction_page(dataclasses.replace(asked[1], reason="<b>1 & 2</b>"))
    assert "&lt;b&gt;1 &amp; 2&lt;/b&gt;" in page and "<b>" not in page


MISTAKES = {
    "predict nowhere.npy": "'nowhere.npy' cannot be read",
    "predict broken.npy": "not a valid .npy file",
    "predict short.npy missing.npy": "missing.npy",
    "predict short.npy long.npy --classes labels.npy": "--classes needs one file, got 2.",
    "predict short.npy long.npy --blur 0,1": "--blur needs one file, got 2.",
    "predict both.npz --classes labels.npy --blur 0,1": "Give --classes or --blur, not both",
    "predict short.npy --blur 1": "two or more different widths",
    "predict short.npy --blur 1,1": "two or more different widths",
    "predict short.npy --blur 0,wide": "two or more different widths",
    "predict short.npy --classes labels.npy": "1600 labels for 800 samples",
    "predict short.npy long.npy --shape 5x5": "`shape` (5, 5) does not have as many sites",
    "predict short.npy long.npy --preprocess centre": "Did you mean 'center'?",
    "predict short.npy long.npy --out x.png": "its name must end in .json or .html",
    "predict short.npy long.npy --xi 3": "Unknown option of `localfields predict short.npy long.npy` '--xi'",
    "predict shrot": "Unknown stimulus 'shrot'",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_one_line(line, files, quick, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    assert (stop.value.code, out, quick) == (2, "", [])
    assert err.startswith("localfields: ") and len(err.splitlines()) == 1 and MISTAKES[line] in err
