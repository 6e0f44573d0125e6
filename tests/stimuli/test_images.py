"""Patches of images: cut where they should be, from what they should be."""

import json

import numpy as np
import pytest
from PIL import Image

import localfields as lf


def ramps(height=20, width=31):
    """Two images in which a pixel's value tells its place."""
    place = np.arange(height * width, dtype=float).reshape(height, width)
    return [place, 1000 + place]


def raw(source, **values):
    given = {"shape": (4, 5), "patches": 3000, "normalize": "none", "preprocess": ()} | values
    return lf.stimuli.ImagePatches(source, **given)


def test_patches_are_cut_at_every_place_equally_often():
    patches = raw(ramps())
    x = patches.rows.reshape(-1, 4, 5)
    wanted = 31 * np.arange(4)[:, None] + np.arange(5)
    np.testing.assert_array_equal(x - x[:, :1, :1], np.broadcast_to(wanted, x.shape))
    image, corner = np.divmod(x[:, 0, 0], 1000)
    row, column = np.divmod(corner, 31)
    assert row.max() == 16 and column.max() == 26 and row.min() == column.min() == 0
    for values, bins in ((image, 2), (row, 17), (column, 27)):
        counts = np.bincount(values.astype(int), minlength=bins)
        expected = 3000 / bins
        assert ((counts - expected) ** 2 / expected).sum() < bins + 5 * np.sqrt(2 * bins) + 25
    other = raw(ramps(), places=1)
    assert not np.array_equal(other.rows, patches.rows) and other != patches


def test_places_do_not_depend_on_blur():
    """Classes that differ in blur see the same places."""
    sharp, soft = (raw(ramps(40, 40), blur=blur).rows for blur in (0.0, 1.0))
    inside = np.abs(sharp - soft).reshape(-1, 20).max(axis=1)
    assert np.median(inside) < 1e-9  # a ramp blurred is the ramp, away from the border


def test_colors_become_luminance(tmp_path):
    colors = np.zeros((2, 12, 12, 3), np.uint8)
    colors[0, ..., 1] = np.arange(12) * 20
    colors[1] = (np.arange(12) * 10)[:, None, None]
    found = raw(colors, patches=500).rows
    gray = raw(colors.astype(float) @ [0.2126, 0.7152, 0.0722], patches=500).rows
    np.testing.assert_allclose(found, gray, atol=1e-12)
    for place, image in enumerate(colors):
        Image.fromarray(image).save(tmp_path / f"{place}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    np.testing.assert_allclose(raw(str(tmp_path), patches=500).rows, gray, atol=1e-12)
    files = [str(tmp_path / "0.png"), str(tmp_path / "1.png")]
    assert (
        raw(files).to_json()["source"]["sha256"] == raw(str(tmp_path)).to_json()["source"]["sha256"]
    )


def test_zoom_averages_blocks():
    images = [np.random.default_rng(5).normal(size=(21, 30))]
    coarse = images[0][:20].reshape(10, 2, 15, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(raw(images, zoom=2).rows, raw([coarse]).rows, atol=1e-12)


def test_each_image_is_normalized():
    one = np.random.default_rng(6).normal(size=(30, 30))
    np.testing.assert_allclose(
        raw([one, one], normalize="standard").rows,
        raw([5 * one + 3, 0.1 * one], normalize="standard").rows,
        atol=1e-9,
    )
    positive = np.exp(one)
    wanted = np.log1p(positive - positive.min())
    wanted = (wanted - wanted.mean()) / wanted.std()
    np.testing.assert_allclose(
        raw([positive], normalize="log").rows, raw([wanted]).rows, atol=1e-12
    )


def test_the_embedded_photographs():
    patches = lf.stimuli.ImagePatches(shape=(8, 8), patches=2000)
    covariance = patches.covariance().reshape(64, 64)
    np.testing.assert_allclose(np.diag(covariance), 1, atol=1e-9)
    assert covariance[0, 1] > 0.8  # natural scenes: neighbors are alike
    assert lf.from_json(json.loads(json.dumps(patches.to_json()))) == patches
    blurred = patches.replace(blur=2.0).covariance().reshape(64, 64)
    assert blurred[0, 3] > covariance[0, 3] + 0.02  # blur makes the lengthscale longer


def broken(path):
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    return str(path)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda d: str(d / "no.png"), "cannot be read .No such file"),
        (lambda d: str(d), "there are no images in"),
        (lambda d: broken(d / "a.png"), "a.png. cannot be read"),
        (lambda d: "a.doc", "not an image that can be read"),
        (lambda d: [], "has no images"),
        (lambda d: 3, "a folder, a file"),
        (lambda d: np.zeros(5), "check the order of the axes"),
        (lambda d: np.full((1, 9, 9), np.nan), "nan or infinite"),
        (lambda d: np.zeros((1, 9, 9)), "the data are constant"),
        (lambda d: np.eye(3)[None], "larger than the images"),
        (lambda d: np.array([[["a"] * 9] * 9]), "a folder, a file"),
        (lambda d: {"files": ["x"]}, "an object with `files` and `sha256`"),
        (lambda d: {"files": "embedded", "sha256": "0"}, "have changed since"),
        (lambda d: {"files": [], "sha256": "0"}, "not in this process"),
    ],
)
def test_what_is_no_image_is_refused(make, says, tmp_path):
    with pytest.raises(lf.InputError, match=says) as told:
        raw(make(tmp_path))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "values, says",
    [({"shape": 16}, "two numbers"), ({"patches": 10**7}, "at most"), ({"blur": -1}, "blur")],
)
def test_what_is_no_patch_is_refused(values, says):
    with pytest.raises(lf.InputError, match=says):
        raw(ramps(), **values)
