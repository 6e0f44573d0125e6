"""Waves fitted to fields: known waves come back, the best fit is the best there is, a bump is no
wave.
"""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localfields import InputError
from localfields.analysis import fit_sinusoid


def wave(size, frequency, amplitude=1.0, phase=0.0, offset=0.0):
    return offset + amplitude * np.cos(2 * np.pi * frequency * np.arange(size) / size + phase)


def turned(angle):
    return np.abs(np.angle(np.exp(1j * np.asarray(angle))))


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(8, 60),
    part=st.floats(0, 1),
    amplitude=st.floats(0.1, 10),
    phase=st.floats(-np.pi, np.pi),
    offset=st.floats(-3, 3),
)
def test_a_wave_comes_back(size, part, amplitude, phase, offset):
    frequency = 0.6 + part * (size / 2 - 0.1 - 0.6)
    fit = fit_sinusoid(wave(size, frequency, amplitude, phase, offset))
    assert fit.frequency == pytest.approx(frequency, abs=1e-8)
    assert fit.amplitude == pytest.approx(amplitude, rel=1e-8)
    assert fit.offset == pytest.approx(offset, abs=1e-8)
    assert turned(fit.phase - phase) < 1e-8 and fit.error < 1e-10


def test_a_wave_on_a_torus_comes_back(rng):
    shape, num = (12, 9), 40
    frequency = rng.uniform(0.6, [5.9, 4.4], size=(num, 2)) * np.stack(
        [np.ones(num), rng.choice([-1, 1], num)], 1
    )
    phase, offset = rng.uniform(-np.pi, np.pi, num), rng.normal(size=num)
    x, y = np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij")
    angle = 2 * np.pi * (frequency[:, 0, None, None] * x + frequency[:, 1, None, None] * y)
    fields = offset[:, None, None] + 2 * np.cos(angle + phase[:, None, None])
    fit = fit_sinusoid(fields, axes=2)
    np.testing.assert_allclose(fit.frequency, frequency, atol=1e-8)
    np.testing.assert_allclose(fit.amplitude, 2, atol=1e-8)
    np.testing.assert_allclose(fit.offset, offset, atol=1e-8)
    assert turned(fit.phase - phase).max() < 1e-8
    np.testing.assert_allclose(fit.curve(), fields, atol=1e-8)


@pytest.mark.parametrize("kind", ("noise", "bumps", "steps"))
def test_no_other_frequency_fits_better(rng, kind):
    """Against a scan of all frequencies, with least squares by numpy at each."""
    size, x = 24, np.arange(24)
    fields = {
        "noise": rng.normal(size=(20, size)),
        "bumps": np.exp(
            -((x - rng.uniform(6, 18, (20, 1))) ** 2) / 2 / rng.uniform(0.5, 4, (20, 1)) ** 2
        ),
        "steps": np.sign(x - rng.uniform(2, 22, (20, 1))),
    }[kind]
    best = np.full(20, np.inf)
    for frequency in np.linspace(0.5, size / 2, 4000):
        columns = np.stack(
            [wave(size, frequency), wave(size, frequency, phase=-np.pi / 2), np.ones(size)], axis=1
        )
        fit = columns @ np.linalg.lstsq(columns, fields.T, rcond=1e-9)[0]
        best = np.minimum(best, np.linalg.norm(fields.T - fit, axis=0))
    best /= np.linalg.norm(fields, axis=1)
    result = fit_sinusoid(fields)
    assert (result.error <= best + 1e-9).all()
    np.testing.assert_allclose(result.error, best, atol=1e-4)  # the scan is coarse
    rest = np.linalg.norm(fields - result.curve(), axis=1) / np.linalg.norm(fields, axis=1)
    np.testing.assert_allclose(result.error, rest, atol=1e-12)


def test_scale_sign_and_mirror(rng):
    fields = wave(30, 2.3, offset=0.4) + 0.3 * rng.normal(size=(10, 30))
    one = fit_sinusoid(fields)
    for scale in (-1.0, 1e-20, -1e20):
        other = fit_sinusoid(scale * fields)
        np.testing.assert_allclose(other.frequency, one.frequency, atol=1e-6)
        np.testing.assert_allclose(other.error, one.error, atol=1e-10)
        np.testing.assert_allclose(other.amplitude, abs(scale) * one.amplitude, rtol=1e-6)
        np.testing.assert_allclose(other.offset, scale * one.offset, rtol=1e-5)
        assert turned(other.phase - one.phase - np.pi * (scale < 0)).max() < 1e-5
    mirrored = fit_sinusoid(fields[:, ::-1])
    np.testing.assert_allclose(mirrored.frequency, one.frequency, atol=1e-6)
    np.testing.assert_allclose(mirrored.error, one.error, atol=1e-10)


def test_whole_frequencies_do_not_know_where_the_ring_begins(rng):
    field = wave(40, 3, phase=0.7, offset=0.2)
    for shift in (1, 17):
        fit = fit_sinusoid(np.roll(field, shift))
        assert fit.frequency == pytest.approx(3, abs=1e-10)
        assert turned(fit.phase - 0.7 + 2 * np.pi * 3 * shift / 40) < 1e-8


def test_noise_leaves_the_error_it_should(rng):
    """‖rest‖² is σ² χ² with N − 4 degrees of freedom, and the frequency has the error that
    theory gives it.
    """
    size, num, sigma = 40, 4000, 0.02
    fields = wave(size, 2.5, phase=0.4) + sigma * rng.normal(size=(num, size))
    fit = fit_sinusoid(fields)
    rest = (fit.error**2 * (fields**2).sum(axis=1)) / sigma**2
    for degrees, should in (
        (size - 4, True),
        (size - 3, False),
    ):  # one fitted number less would be noticed
        z = (rest.mean() - degrees) / np.sqrt(2 * degrees / num)
        assert (abs(z) < 5) == should
    angle = 2 * np.pi * 2.5 * np.arange(size) / size + 0.4
    slopes = np.stack(
        [
            np.cos(angle),
            np.sin(angle),
            np.ones(size),
            -np.sin(angle) * 2 * np.pi * np.arange(size) / size,
        ],
        axis=1,
    )
    variance = sigma**2 * np.linalg.inv(slopes.T @ slopes)[3, 3]
    z = (((fit.frequency - 2.5) ** 2).mean() / variance - 1) / np.sqrt(2 / num)
    assert abs(z) < 5
    assert abs((fit.frequency - 2.5).mean()) < 5 * np.sqrt(variance / num)


@pytest.mark.parametrize("size", (40, 41))
def test_the_fastest_wave(size):
    field = 3 * (-1.0) ** np.arange(size)
    fit = fit_sinusoid(field)
    assert fit.frequency == pytest.approx(size / 2) and fit.error < 1e-10
    np.testing.assert_allclose(fit.curve(), field, atol=1e-9)


def test_a_constant_field():
    fit = fit_sinusoid(np.full((2, 20), -0.3))
    assert fit.frequency.tolist() == [0, 0] and fit.amplitude.tolist() == [0, 0]
    np.testing.assert_allclose(fit.offset, -0.3)
    np.testing.assert_allclose(fit.error, 0, atol=1e-15)


def test_a_bump_is_no_wave():
    x = np.arange(40)
    for width in (
        0.5,
        1,
        2,
        3,
    ):  # fields that count as waves in the paper have less than a third of this error
        assert fit_sinusoid(np.exp(-((x - 20) ** 2) / 2 / width**2)).error > 0.3
    assert fit_sinusoid(np.eye(40)[11]).error > 0.9


def test_between_sites_and_over_leading_axes(rng):
    fields = np.stack([[wave(20, 1.5), wave(20, 2.25, phase=1)]] * 3)
    fit = fit_sinusoid(fields)
    assert fit.error.shape == fit.frequency.shape == (3, 2)
    np.testing.assert_allclose(fit.curve(), fields, atol=1e-9)
    places = np.array([0.5, 3.25])
    np.testing.assert_allclose(
        fit.curve(places)[1, 1], np.cos(2 * np.pi * 2.25 * places / 20 + 1), atol=1e-9
    )


@pytest.mark.parametrize(
    ("fields", "axes", "message"),
    (
        (np.ones(4), 1, "at least 5 sites, got shape (4,)"),
        (np.ones((6, 4)), 2, "at least 5 sites each, got shape (6, 4)"),
        (np.ones(8), 2, "got shape (8,)"),
        (np.ones((0, 8)), 1, "got shape (0, 8)"),
        ([[1.0] * 8, [np.nan] * 8], 1, "1 of 2 nan or infinite, the first at (1,)"),
        (np.zeros(8), 1, "1 of 1 zero everywhere"),
        (["a"], 1, "real numbers"),
        ([[1, 2], [3]], 1, "real numbers"),
        (np.ones(8) * 1j, 1, "real numbers"),
        (np.ones(8), 0, "`axes` must be at least 1, got 0"),
    ),
)
def test_mistakes_are_told(fields, axes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        fit_sinusoid(fields, axes)
