"""Files that are written: refused beforehand where they cannot be, whole or not at all, and as
open as any other.
"""

import os
from pathlib import Path

import pytest

from localfields import InputError
from localfields._files import check_target, publish


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.txt", "must end in .nc or .csv"),
        ("none/a.nc", "does not exist"),
        ("folder.nc", "is a folder"),
        ("old.nc", "--overwrite"),
    ],
)
def test_targets_that_are_refused(name, words, tmp_path):
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "old.nc").write_text("precious")
    with pytest.raises(InputError, match=words):
        check_target(tmp_path / name, (".nc", ".csv"), overwrite=False)
    if name != "old.nc":
        with pytest.raises(InputError, match=words):
            check_target(tmp_path / name, (".nc", ".csv"), overwrite=True)


def test_targets_that_are_accepted(tmp_path):
    (tmp_path / "old.nc").write_text("precious")
    check_target(tmp_path / "new.csv", (".nc", ".csv"), overwrite=False)
    check_target(tmp_path / "old.nc", (".nc", ".csv"), overwrite=True)
    assert (tmp_path / "old.nc").read_text() == "precious"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_is_as_open_as_any_other(mask, tmp_path):
    before = os.umask(mask)
    try:
        publish(tmp_path / "a.csv", lambda part: part.write_text("1"))
        (tmp_path / "b.csv").write_text("1")
    finally:
        os.umask(before)
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old")

    def fail(part: Path):
        assert part.suffix == ".csv" and part.parent == tmp_path and part != target
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(target, fail)
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a.csv"]
    publish(target, lambda part: part.write_text("new"))
    assert target.read_text() == "new" and os.listdir(tmp_path) == ["a.csv"]


def test_what_the_system_refuses_is_told(tmp_path):
    with pytest.raises(InputError, match=r"Cannot write .*a\.csv: No such file or directory\."):
        publish(tmp_path / "none" / "a.csv", lambda part: None)
