"""Answers to gratings against closed forms of Gabors, brute force and the symmetries that they
must have.
"""

import numpy as np
import pytest
from scipy.special import iv

from localfields import InputError, analysis
from localfields.analysis import METRICS, fit_gabor, subfields, tuning

SHAPE = (24, 24)


def gabor(
    width=2.5, frequency=0.2, angle=0.0, phase=0.0, center=(11.0, 13.0), aspect=1.0, shape=SHAPE
):
    """A wave under an envelope, which is `aspect` times longer across the direction of the wave,
    around the torus.
    """
    d = [(np.arange(n) - c + n / 2) % n - n / 2 for n, c in zip(shape, center, strict=True)]
    x, y = np.meshgrid(*d, indexing="ij")
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    envelope = np.exp(-(along**2 + (across / aspect) ** 2) / 2 / width**2)
    return envelope * np.cos(2 * np.pi * frequency * along + phase)


def apart(one, other):
    """Between two orientations."""
    return np.abs((np.asarray(one) - other + np.pi / 2) % np.pi - np.pi / 2)


@pytest.mark.parametrize(("width", "frequency"), [(2.0, 0.25), (2.5, 0.2), (3.0, 0.15)])
def test_an_even_gabor_in_closed_form(width, frequency):
    """|ŵ| is a Gaussian around ±f; on the circle |k| = f it is cosh(κ cos θ), κ = (2πfs)²."""
    tuned = tuning([gabor(width, frequency, angle) for angle in (0.0, 0.4, 1.3, 2.8)])
    kappa = (2 * np.pi * frequency * width) ** 2
    np.testing.assert_allclose(tuned.frequency, frequency, rtol=2e-3)
    assert apart(tuned.orientation, [0, 0.4, 1.3, 2.8]).max() < 2e-3
    np.testing.assert_allclose(tuned.selectivity, iv(2, kappa) / iv(0, kappa), rtol=5e-3)
    half = np.sqrt(2 * np.log(2)) / (2 * np.pi * width)
    np.testing.assert_allclose(
        tuned.bandwidth, np.log2((frequency + half) / (frequency - half)), rtol=0.01
    )
    np.testing.assert_allclose(tuned.oddness, 0, atol=1e-3)


def test_a_round_blob_has_no_orientation_and_a_long_one_has():
    blob, long, wider = (gabor(1.5, 0, aspect=a) for a in (1, 1.3, 1.6))
    tuned = tuning([blob, -blob, long, wider])
    assert tuned.selectivity[:2].max() < 1e-6 and np.isinf(tuned.bandwidth).all()
    np.testing.assert_allclose(tuned.frequency, 1 / 24, rtol=1e-9)  # the lowest grating there is
    # |ŵ| at angle θ is exp(−κ(cos² + a² sin²)/2), so that the index is I₁/I₀ of κ(a² − 1)/4.
    kappa = (2 * np.pi * 1.5 / 24) ** 2
    for index, a in ((2, 1.3), (3, 1.6)):
        z = kappa * (a**2 - 1) / 4
        assert tuned.selectivity[index] == pytest.approx(iv(1, z) / iv(0, z), rel=1e-3)
        assert apart(tuned.orientation[index], 0) < 1e-2  # bars lie along the longer axis
    np.testing.assert_allclose(np.cos(tuned.phase), [1, -1, 1, 1], atol=1e-6)


def test_the_phase_is_the_gabors_wherever_it_lies():
    phases = np.array([0.0, 0.7, np.pi / 2, 2.5, -2.0, -0.4])
    for center in ((11.0, 13.0), (0.0, 23.0), (5.5, 1.25)):
        fields = np.stack([gabor(phase=phase, angle=0.6, center=center) for phase in phases])
        tuned = tuning(fields)
        np.testing.assert_allclose(np.exp(1j * tuned.phase), np.exp(1j * phases), atol=0.02)
        np.testing.assert_allclose(tuned.oddness, np.sin(phases) ** 2, atol=0.02)
    fitted = fit_gabor(fields, axes=2)
    assert apart(tuned.orientation, fitted.orientation).max() < 0.01
    np.testing.assert_allclose(np.exp(1j * fitted.phase), np.exp(1j * tuned.phase), atol=0.02)


def test_answers_are_those_of_a_rectified_neuron_to_drifting_gratings(rng):
    """Mean and first harmonic of max(0, ⟨w, grating⟩) over a period, by brute force: F1/F0 = π/2
    whatever the field.
    """
    field = rng.normal(size=(8, 8))
    tuned = tuning(field)
    x, y = np.meshgrid(np.arange(8), np.arange(8), indexing="ij")
    turns = 2 * np.pi * np.arange(400) / 400

    def answer(frequency, angle):
        along = 2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle))
        rolled = np.roll(field, -(np.floor(analysis.position(field, 2)).astype(int) - 4), (0, 1))
        drift = np.maximum(
            0, (rolled * np.cos(along[None] + turns[:, None, None])).sum(axis=(1, 2))
        )
        return drift.mean(), 2 * np.abs((drift * np.exp(1j * turns)).mean())

    best = answer(tuned.frequency, tuned.orientation)
    assert best[1] / best[0] == pytest.approx(np.pi / 2, rel=1e-3)
    angles = np.pi * np.arange(90) / 90
    curve = np.array([answer(tuned.frequency, angle)[1] for angle in angles])
    assert tuned.selectivity == pytest.approx(
        np.abs((curve * np.exp(2j * angles)).sum()) / curve.sum(), rel=1e-3
    )
    others = [answer(f, angle)[1] for f in np.linspace(1 / 8, 0.5, 16) for angle in angles]
    assert max(others) <= best[1] * (1 + 1e-6)


def test_symmetries(rng):
    """Size, sign, shifts and a quarter turn of the field change what they should, and nothing
    else.
    """
    fields = np.stack(
        [gabor(angle=0.5, phase=0.8), gabor(1.5, 0.3, 2.0, 1.0), rng.normal(size=SHAPE)]
    )
    result, names = tuning(fields), ("frequency", "orientation", "selectivity", "bandwidth")
    for other in (3 * fields, -fields, np.roll(fields, (3, 7), (1, 2))):
        for name in names:
            np.testing.assert_allclose(
                getattr(tuning(other), name), getattr(result, name), rtol=1e-6
            )
    np.testing.assert_allclose(
        np.exp(1j * tuning(-fields).phase), -np.exp(1j * result.phase), atol=1e-6
    )
    turned = tuning(fields[:2].swapaxes(1, 2)[:, ::-1])  # a quarter turn
    np.testing.assert_allclose(
        apart(turned.orientation, result.orientation[:2]), np.pi / 2, atol=1e-2
    )
    np.testing.assert_allclose(turned.selectivity, result.selectivity[:2], rtol=1e-2)


def test_subfields_are_counted_around_the_lattice():
    rings = np.cos(2 * np.pi * np.array([[0], [1], [3]]) * np.arange(40) / 40)
    assert subfields(rings).tolist() == [1, 2, 6]
    assert (
        subfields(np.eye(12)[:2].sum(axis=0)) == 1
        and subfields(np.eye(12)[[0, 11]].sum(axis=0)) == 1
    )
    assert (
        subfields(np.eye(12)[0] - np.eye(12)[1]) == 2
        and subfields(np.eye(12)[0] + np.eye(12)[2]) == 2
    )
    blob = gabor(2.0, 0, center=(0, 0))
    assert subfields([blob, blob + np.roll(blob, 12, 0)], axes=2).tolist() == [1, 2]
    assert subfields([blob, blob + 0.2 * np.roll(blob, 12, 0)], axes=2).tolist() == [
        1,
        1,
    ]  # too weak to count
    surround = (
        blob - 0.9 * gabor(2.0 * 1.6, 0, center=(0, 0)) / 1.6**2 * 2.5
    )  # a disk and the ring around it
    assert subfields(surround, axes=2) == 2
    # The next lobes of an odd Gabor of this width are at 0.15 of the largest, of an even one at
    # 0.38 and 0.02.
    assert (
        subfields(gabor(1.8, 0.2, 0.0, np.pi / 2), axes=2) == 2
        and subfields(gabor(1.8, 0.2), axes=2) == 3
    )


def test_as_metrics_and_what_is_refused():
    names = ("orientation_selectivity", "preferred_orientation", "oddness")
    assert all(METRICS[name].slow for name in names) and not METRICS["subfields"].slow
    many = np.stack([gabor(angle=a) for a in np.linspace(0, 3, 6)]).reshape(2, 3, *SHAPE)
    tuned = tuning(many)
    assert tuned.selectivity.shape == tuned.phase.shape == (2, 3)
    for name, values in zip(
        names, (tuned.selectivity, tuned.orientation, tuned.oddness), strict=True
    ):
        np.testing.assert_array_equal(METRICS[name].function(many, 2), values)
    with pytest.raises(InputError, match="torus"):
        tuning(np.ones(40), axes=1)
    with pytest.raises(InputError, match="zero everywhere"):
        tuning(np.zeros((8, 8)))
    with pytest.raises(InputError, match="at least 4 sites"):
        tuning(np.ones((3, 8)))
