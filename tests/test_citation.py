"""CITATION.cff has what its readers need, and says the same as the package; the changelog knows
its version.
"""

import re
import tomllib
from pathlib import Path

import yaml  # that of dask

ROOT = Path(__file__).parents[1]


def read():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_it_has_what_the_format_requires():
    text = read()
    assert {"cff-version", "message", "title", "authors"} <= set(text)
    assert text["cff-version"] == "1.2.0" and text["type"] == "software" and text["authors"]
    for one in (text["preferred-citation"], *text["references"]):
        assert {"type", "title", "authors", "year"} <= set(one)
        assert all({"family-names", "given-names"} <= set(author) for author in one["authors"])


def test_it_names_the_paper_and_its_predecessor():
    text = read()
    paper, before = text["preferred-citation"], text["references"][0]
    assert [author["family-names"] for author in paper["authors"]] == ["Lufkin", "Saxe", "Grant"]
    assert paper["title"] in (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert paper["year"] == 2024 and "NeurIPS" in paper["conference"]["name"]
    assert [author["family-names"] for author in before["authors"]] == ["Ingrosso", "Goldt"]
    assert (before["year"], before["volume"], before["start"]) == (2022, 119, "e2201854119")


def test_it_agrees_with_the_package_and_the_changelog():
    text = read()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (str(text["version"]), text["license"]) == (project["version"], project["license"])
    newest = re.search(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert newest is not None and newest[1] == project["version"]


def test_contributing_fits_a_screen_and_names_every_skeleton():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert set(re.findall(r"skeletons/\w+\.py", text)) == {
        f"skeletons/{p.name}" for p in (ROOT / "skeletons").glob("*.py")
    }
