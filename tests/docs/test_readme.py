"""What the README says besides its code: the picture is drawn by its script, the claims are
those of the ledger.
"""

import importlib.util
import re

import matplotlib.image
import pytest

from docs.pages import ROOT


@pytest.mark.slow
def test_the_picture_can_be_drawn_again(tmp_path):
    place = importlib.util.spec_from_file_location("picture", ROOT / "scripts" / "picture.py")
    picture = importlib.util.module_from_spec(place)
    place.loader.exec_module(picture)
    picture.draw(tmp_path / "born.png", steps=2)
    kept = matplotlib.image.imread(picture.TARGET)
    assert matplotlib.image.imread(tmp_path / "born.png").shape == kept.shape
    assert str(picture.TARGET.relative_to(ROOT)) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_claims_named_are_in_the_ledger():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("## Published against measured") : text.index("## Speed")]
    named = set(re.findall(r"\b[A-Z]\d[a-z]?\b|\bL3b\b", part))
    figures = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src/localfields/figures").glob("*.py")
    )
    assert named == {"K3", "K5", "L3b", "M2", "P1", "T1"}
    assert all(f'"{name}"' in figures for name in named)
    assert "20 published claims" in part and "14 are reproduced" in part and "Six differ" in part
