"""Gabors fitted to fields: known ones come back, wherever they lie and whatever they are
multiplied by.
"""

import dataclasses
import re

import numpy as np
import pytest

from localfields import InputError
from localfields.analysis import GaborFit, fit_gabor, fit_sinusoid


def turned(angle, period=2 * np.pi):
    return np.abs((np.asarray(angle) + period / 2) % period - period / 2)


def on_ring(rng, size, num, widths):
    return GaborFit(
        shape=(size,),
        position=rng.uniform(0, size, num),
        covariance=rng.uniform(*widths, (num, 1, 1)) ** 2,
        frequency=rng.uniform(1, size / 2 - 1, num),
        phase=rng.uniform(-np.pi, np.pi, num),
        amplitude=rng.uniform(0.1, 3, num),
        error=np.zeros(num),
    )


def on_torus(rng, shape, num):
    angle, widths = (
        rng.uniform(0, np.pi, num),
        np.stack([rng.uniform(2, 3, num), rng.uniform(1, 1.8, num)], axis=1),
    )
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1).reshape(
        num, 2, 2
    )
    frequency = np.stack(
        [rng.uniform(0.5, shape[0] / 2 - 1, num), rng.uniform(-0.4, 0.4, num) * shape[1]], axis=1
    )
    return angle, GaborFit(
        shape=shape,
        position=rng.uniform(0, 1, (num, 2)) * shape,
        covariance=np.einsum("fij,fj,fkj->fik", turn, widths**2, turn),
        frequency=frequency,
        phase=rng.uniform(-np.pi, np.pi, num),
        amplitude=rng.uniform(0.1, 3, num),
        error=np.zeros(num),
    )


def same(found, known, tolerance):
    sizes = np.array(known.shape) if len(known.shape) > 1 else known.shape[0]
    assert turned(found.position - known.position, sizes).max() < tolerance
    assert (
        np.abs(found.covariance - known.covariance).max()
        < tolerance * np.abs(known.covariance).max()
    )
    assert np.abs(found.frequency - known.frequency).max() < tolerance
    assert turned(found.phase - known.phase).max() < tolerance
    assert np.abs(found.amplitude / known.amplitude - 1).max() < tolerance


def test_the_formula_by_hand():
    """On a ring, with all ways around summed."""
    known = GaborFit((20,), *(np.array(v) for v in (7.3, [[16.0]], 3.4, 0.5, 2.0, 0.0)))
    d = np.arange(20) - 7.3 + 20 * np.arange(-9, 10)[:, None]
    direct = 2 * np.exp(-(d**2) / 2 / 16) * np.cos(2 * np.pi * 3.4 * d / 20 + 0.5)
    np.testing.assert_allclose(known.curve(), direct.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize(("size", "widths"), ((16, (1, 3)), (40, (1, 7)), (41, (1, 14))))
def test_gabors_on_a_ring_come_back(rng, size, widths):
    known = on_ring(rng, size, 300, widths)
    fit = fit_gabor(known.curve())
    assert fit.error.max() < 1e-10
    same(fit, known, 1e-8)
    np.testing.assert_allclose(fit.width, np.sqrt(known.covariance[:, 0, 0]), rtol=1e-8)
    np.testing.assert_allclose(fit.cycles, known.frequency * known.width / size, rtol=1e-8)
    np.testing.assert_allclose(fit.curve(), known.curve(), atol=1e-9)


def test_gabors_on_a_torus_come_back(rng):
    angle, known = on_torus(rng, (16, 14), 40)
    fit = fit_gabor(known.curve(), axes=2)
    assert fit.error.max() < 1e-10
    same(fit, known, 1e-8)
    assert turned(fit.elongation - angle, np.pi).max() < 1e-6
    assert (fit.aspect > 1).all() and np.abs(fit.aspect - known.aspect).max() < 1e-8
    wave = np.arctan2(known.frequency[:, 1] / 14, known.frequency[:, 0] / 16)
    assert turned(fit.orientation - wave, np.pi).max() < 1e-8
    np.testing.assert_allclose(fit.curve(), known.curve(), atol=1e-9)


def test_place_sign_and_scale(rng):
    known = dataclasses.replace(on_ring(rng, 40, 20, (2, 5)), frequency=rng.uniform(5, 15, 20))
    fields = known.curve()
    fields = fields + 0.05 * rng.normal(size=fields.shape) * fields.std(axis=1, keepdims=True)
    one = fit_gabor(fields)
    for other, shift, turn, scale in (
        (fit_gabor(np.roll(fields, 13, axis=1)), 13, 0, 1),
        (fit_gabor(-1e-9 * fields), 0, np.pi, 1e-9),
    ):
        assert turned(other.position - one.position - shift, 40).max() < 1e-4
        assert turned(other.phase - one.phase - turn).max() < 1e-3
        np.testing.assert_allclose(other.error, one.error, rtol=1e-7)
        np.testing.assert_allclose(other.width, one.width, rtol=1e-4)
        np.testing.assert_allclose(other.frequency, one.frequency, atol=1e-4)
        np.testing.assert_allclose(other.amplitude, scale * one.amplitude, rtol=1e-3)


def test_noise_leaves_the_error_it_should(rng):
    """‖rest‖² is σ² χ² with N − 5 degrees of freedom; one fitted number less would be noticed."""
    size, num, sigma = 16, 1600, 0.01
    clean = GaborFit((size,), *(np.array(v) for v in (7.2, [[4.0]], 3.5, 0.5, 1.0, 0.0))).curve()
    fields = clean + sigma * rng.normal(size=(num, size))
    fit = fit_gabor(fields)
    rest = fit.error**2 * (fields**2).sum(axis=1) / sigma**2
    for degrees, should in ((size - 5, True), (size - 4, False)):
        z = (rest.mean() - degrees) / np.sqrt(2 * degrees / num)
        assert (abs(z) < 5) == should
    for name, value in (("position", 7.2), ("frequency", 3.5), ("width", 2.0), ("phase", 0.5)):
        got = getattr(fit, name)
        assert abs(got.mean() - value) < 5 * got.std() / np.sqrt(num)


def test_a_bump_has_no_wave():
    d = np.arange(40) - 17.25 + 40 * np.arange(-2, 3)[:, None]
    fit = fit_gabor(
        [
            sign * np.exp(-(d**2) / 2 / width**2).sum(axis=0)
            for sign in (1, -1)
            for width in (1, 2, 4)
        ]
    )
    np.testing.assert_allclose(fit.position, 17.25, atol=1e-6)
    np.testing.assert_allclose(fit.width, [1, 2, 4] * 2, rtol=1e-6)
    np.testing.assert_allclose(fit.amplitude, 1, rtol=1e-6)
    assert fit.frequency.tolist() == fit.cycles.tolist() == [0] * 6
    assert fit.phase.tolist() == [0] * 3 + [np.pi] * 3 and fit.error.max() < 1e-6


def test_a_round_bump_on_a_torus():
    x, y = np.meshgrid(np.arange(14), np.arange(12), indexing="ij")
    fit = fit_gabor(np.exp(-((x - 6) ** 2 + (y - 5.5) ** 2) / 2 / 1.5**2), axes=2)
    np.testing.assert_allclose(fit.position, [6, 5.5], atol=1e-6)
    np.testing.assert_allclose(fit.width, 1.5, rtol=1e-5)
    np.testing.assert_allclose(fit.aspect, 1, rtol=1e-5)


def test_a_single_site():
    fit = fit_gabor(
        np.eye(40)[[0, 11]]
    )  # where on the site it lies, and with which wave, nobody can tell
    assert turned(fit.position - [0, 11], 40).max() < 0.5
    assert (fit.width < 0.5).all() and (fit.error < 1e-6).all()


def test_a_wave_wants_the_widest_envelope_and_a_sinusoid_describes_it_better():
    field = np.cos(2 * np.pi * 3 * np.arange(40) / 40 + 1)
    fit = fit_gabor(field)
    assert fit.width == pytest.approx(20) and fit.frequency == pytest.approx(3, abs=0.01)
    assert fit_sinusoid(field).error < 1e-10 < fit.error


def test_a_gabor_is_better_than_a_wave_or_noise(rng):
    fields = on_ring(rng, 40, 20, (1, 4)).curve()
    assert (fit_sinusoid(fields).error > 0.3).all()
    assert (fit_gabor(rng.normal(size=(20, 40))).error > 0.3).all()


def test_leading_axes(rng):
    known = on_ring(rng, 40, 6, (2, 5))
    fit = fit_gabor(known.curve().reshape(2, 3, 40))
    for name in ("position", "width", "frequency", "phase", "amplitude", "error", "cycles"):
        assert getattr(fit, name).shape == (2, 3)
    assert fit.covariance.shape == (2, 3, 1, 1) and fit.curve().shape == (2, 3, 40)


@pytest.mark.parametrize(
    ("fields", "axes", "message"),
    (
        (np.ones(7), 1, "at least 8 sites, got shape (7,)"),
        (np.ones((8, 8, 8)), 3, "`axes` must be at most 2, got 3"),
        (np.full(8, np.inf), 1, "1 of 1 nan or infinite"),
    ),
)
def test_mistakes_are_told(fields, axes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        fit_gabor(fields, axes)


@pytest.mark.parametrize("name", ("aspect", "orientation", "elongation"))
def test_a_ring_has_no_direction(name):
    with pytest.raises(InputError, match="is defined for fields on a torus"):
        getattr(fit_gabor(np.eye(8)[0]), name)
