"""Numbers of one field, against closed forms, enumeration and the symmetries that they must
have.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from localfields import InputError, analysis

X = np.arange(40)
MEASURES = (
    "position",
    "width",
    "power_spectrum",
    "spectral_peak",
    "spectral_concentration",
    "uncertainty",
    "entropic_excess",
)


def bump(width, center=20.0):
    return np.exp(-((X - center) ** 2) / 2 / width**2)


def around(apart, size):
    return np.abs((np.asarray(apart) + size / 2) % size - size / 2)


# -- closed forms ----------------------------------------------------------------------------------


def test_bumps_lie_where_they_are_put_and_are_as_wide():
    for center in (20, 17.25, 14.9):
        fields = np.stack([bump(s, center) for s in (2, 3, 4)])  # narrower ones notice the sites
        np.testing.assert_allclose(analysis.position(fields), center, atol=1e-6)
        # The circular deviation of a wrapped normal is its own; of the energy, s/√2.
        np.testing.assert_allclose(
            analysis.width(fields), np.array([2, 3, 4]) / np.sqrt(2), rtol=1e-6
        )


def test_width_of_two_sites():
    field = np.eye(12)[2] + np.eye(12)[5]
    resultant = np.cos(2 * np.pi * 1.5 / 12)  # two sites, 1.5 to either side of their middle
    assert analysis.position(field) == pytest.approx(3.5)
    assert analysis.width(field) == pytest.approx(12 / 2 / np.pi * np.sqrt(-2 * np.log(resultant)))
    assert analysis.width(np.eye(12)[2]) == pytest.approx(0, abs=1e-7)


def test_uncertainty_of_bumps_and_a_single_site():
    result = analysis.uncertainty(
        [bump(1), bump(2), bump(3), np.eye(40)[7], bump(3) * np.cos(2 * np.pi * 6 * X / 40)]
    )
    np.testing.assert_allclose(result, [0.502, 0.506, 0.514, 1.83, 2.11], atol=0.005)


@pytest.mark.parametrize("size", (9, 12))
def test_uncertainty_is_that_of_the_interpolation(rng, size):
    """Against integrals over the circle of the trigonometric polynomial through the sites, on a
    fine grid.
    """
    field = rng.normal(size=size)
    theta = 2 * np.pi * np.arange(512) / 512
    k = np.arange(-(size // 2), size // 2 + 1)
    weights = np.fft.fft(field)[k % size] * np.where(2 * np.abs(k) == size, 0.5, 1)
    curve, slope = ((power * weights) @ np.exp(1j * np.outer(k, theta)) for power in (1, 1j * k))
    tau = np.abs((np.exp(1j * theta) * np.abs(curve) ** 2).sum() / (np.abs(curve) ** 2).sum())
    spread = np.sqrt((np.abs(slope) ** 2).sum() / (np.abs(curve) ** 2).sum())
    assert analysis.uncertainty(field) == pytest.approx(
        np.sqrt(1 - tau**2) / tau * spread, rel=1e-10
    )


def test_waves_have_no_place():
    fields = np.cos(2 * np.pi * np.array([[0], [3], [20]]) * X / 40)
    assert np.isinf(analysis.uncertainty(fields)).all()


def test_entropic_excess_in_closed_form(rng):
    actual = analysis.entropic_excess(
        [bump(2), bump(3), np.eye(40)[3], np.ones(40), np.cos(np.pi * X)]
    )
    np.testing.assert_allclose(actual, [1 - np.log(2)] * 2 + [0, 0, 0], atol=1e-9)
    # A comb of every fourth site is a comb in frequency, and meets the bound as well.
    assert analysis.entropic_excess(np.where(X % 4 == 0, 1.0, 0)) == pytest.approx(0, abs=1e-12)
    # A wave: cos² at 40 sites, two frequencies.
    wave = np.cos(2 * np.pi * 3 * X / 40 + 0.3) ** 2 / 20
    expected = -(wave * np.log(wave)).sum() + np.log(2) - np.log(40)
    assert analysis.entropic_excess(
        np.sqrt(wave) * np.sign(np.cos(2 * np.pi * 3 * X / 40 + 0.3))
    ) == pytest.approx(expected)


def test_spectrum_of_waves_on_a_torus():
    shape = (8, 6)
    x, y = np.meshgrid(np.arange(8), np.arange(6), indexing="ij")
    for k in ((0, 0), (3, 0), (-3, 2), (3, 2), (0, 1), (4, 3), (2, 3), (4, 0)):
        field = np.cos(2 * np.pi * (k[0] * x / 8 + k[1] * y / 6) + 0.4)
        spectrum = analysis.power_spectrum(field, axes=2)
        assert spectrum.shape == (8, 4) and spectrum[k[0] % 8, k[1]] == pytest.approx(1)
        assert analysis.spectral_peak(field, axes=2).tolist() == list(k)
        assert analysis.spectral_concentration(field, axes=2) == pytest.approx(1)
    assert shape == field.shape


def test_concentration_of_noise(rng):
    """Modes of Gaussian noise are exponential: the largest of m = 19 pairs and two singles, by
    simulation of those.
    """
    result = analysis.spectral_concentration(rng.normal(size=(4000, 40)))
    modes = np.concatenate(
        [rng.normal(size=(4000, 2)) ** 2, rng.chisquare(2, size=(4000, 19))], axis=1
    )
    null = modes.max(axis=1) / modes.sum(axis=1)
    z = (result.mean() - null.mean()) / np.sqrt((result.var() + null.var()) / 4000)
    assert abs(z) < 5


@pytest.mark.parametrize("shape", ((20,), (21,), (6, 8), (5, 8), (5, 7)), ids=str)
def test_oscillatory_is_twice_what_noise_has(rng, shape):
    result = analysis.spectral_participation(rng.normal(size=(20_000, *shape)), len(shape))
    error = result.std() / np.sqrt(20_000)
    assert abs(result.mean() - analysis.oscillatory_from(shape) / 2) < 5 * error
    degrees = (
        2 * 2 / np.prod(shape)
    )  # if every wave had two degrees of freedom, and shares were independent
    assert abs(result.mean() - degrees) > 5 * error
    assert (result > analysis.oscillatory_from(shape)).mean() < 0.02


# -- bounds and symmetries -------------------------------------------------------------------------

FIELDS = arrays(
    np.float64, st.integers(4, 24), elements=st.floats(-1, 1).map(lambda v: round(v, 6))
).filter(np.any)


@settings(max_examples=100, deadline=None)
@given(FIELDS)
def test_bounds(field):
    assert analysis.uncertainty(field) >= 0.5 - 1e-9
    assert analysis.entropic_excess(field) >= -1e-9
    assert 0 <= analysis.position(field) < len(field)
    assert analysis.power_spectrum(field).sum() == pytest.approx(1)
    assert analysis.spectral_concentration(field) >= 1 / (len(field) // 2 + 1) - 1e-9


@pytest.mark.parametrize("shape", ((24,), (6, 10)), ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_place_sign_and_scale_do_not_matter(rng, name, shape):
    measure, axes = getattr(analysis, name), len(shape)
    fields = rng.normal(size=(5, *shape))
    shift = tuple(range(2, 2 + axes))
    moved = np.roll(fields, shift, axis=tuple(range(1, axes + 1)))
    one = measure(fields, axes)
    for other in (-fields, 1e-30 * fields, 1e30 * fields):
        np.testing.assert_allclose(measure(other, axes), one, rtol=1e-9, atol=1e-12)
    if name == "position":
        sizes = np.array(shape) if axes > 1 else shape[0]
        assert (
            around(
                measure(moved, axes) - one - (np.array(shift) if axes > 1 else shift[0]), sizes
            ).max()
            < 1e-9
        )
    else:
        np.testing.assert_allclose(measure(moved, axes), one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ("position", "width", "uncertainty"))
def test_a_product_on_a_torus_has_the_numbers_of_its_factors(rng, name):
    first, second = rng.normal(size=8), rng.normal(size=11)
    measure = getattr(analysis, name)
    np.testing.assert_allclose(
        measure(np.outer(first, second), 2), [measure(first), measure(second)], rtol=1e-9
    )


def test_entropies_of_a_product_add(rng):
    first, second = rng.normal(size=8), rng.normal(size=11)
    parts = analysis.entropic_excess(first) + analysis.entropic_excess(second)
    assert analysis.entropic_excess(np.outer(first, second), 2) == pytest.approx(parts)


@pytest.mark.parametrize("name", MEASURES)
def test_mistakes_are_told(name):
    with pytest.raises(InputError, match="zero everywhere"):
        getattr(analysis, name)(np.zeros(5))
    with pytest.raises(InputError, match="nan or infinite"):
        getattr(analysis, name)([1.0, np.nan])
    with pytest.raises(InputError, match="`axes`"):
        getattr(analysis, name)(np.ones(5), axes=0)
