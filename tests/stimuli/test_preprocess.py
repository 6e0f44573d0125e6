"""Steps against what they are defined by: exact covariances, inverses, linearity, responses to
constants.
"""

import numpy as np
import pytest

import localfields as lf
from localfields._spec import registered
from localfields.stimuli import preprocess as pre

SHAPE = (4, 6)
SIZE = 24


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(1)
    mixed = generator.normal(size=(200, SIZE)) @ generator.normal(size=(SIZE, SIZE))
    return mixed**3 / 50 + generator.normal(size=SIZE)


def covariance(x):
    return np.cov(x, rowvar=False, bias=True)


def test_center_and_scale(rows):
    x = pre.Scale().fit(rows, SHAPE)(rows)
    np.testing.assert_allclose(x.var(axis=0), 1, rtol=1e-12)
    x = pre.Center().fit(rows, SHAPE)(rows)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    x = pre.Scale(each="all").fit(rows, SHAPE)(rows)
    assert x.var() == pytest.approx(1, rel=1e-12)
    assert np.ptp(x.var(axis=0)) > 0.1  # sites keep their differences


@pytest.mark.parametrize("method", ["zca", "pca"])
def test_whitened_rows_are_white(rows, method):
    step = pre.Whiten(method, cutoff=1e-12).fit(rows, SHAPE)
    white = step(rows)
    np.testing.assert_allclose(covariance(white), np.eye(SIZE), atol=1e-8)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(step.inverse(white), rows, atol=1e-8 * np.abs(rows).max())


def test_zca_is_the_symmetric_whitening_and_pca_is_in_order(rows):
    moved = pre.Whiten("zca").fit(rows, SHAPE)
    matrix = moved(np.eye(SIZE)) - moved(np.zeros((1, SIZE)))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0
    back = pre.Whiten("pca").fit(rows, SHAPE).inverse(np.eye(SIZE)) - rows.mean(axis=0)
    lengths = np.linalg.norm(back, axis=1)  # of the principal axes, in the units of the data
    assert np.all(np.diff(lengths) < 0)
    np.testing.assert_allclose(lengths**2, np.linalg.eigvalsh(covariance(rows))[::-1], rtol=1e-8)


@pytest.mark.parametrize("method", ["zca", "pca"])
def test_a_cutoff_drops_directions_and_whitens_the_rest(rows, method):
    values = np.linalg.eigvalsh(covariance(rows))[::-1]
    cutoff = float(np.sqrt(values[9] * values[10]) / values[0])  # between the tenth and the next
    step = pre.Whiten(method, cutoff=cutoff).fit(rows, SHAPE)
    found = covariance(step(rows))
    np.testing.assert_allclose(found @ found, found, atol=1e-9)  # a projection
    assert np.trace(found) == pytest.approx(10, abs=1e-9)
    again = step.inverse(step(rows))
    np.testing.assert_allclose(step(again), step(rows), atol=1e-9)
    lost = covariance(rows - again)
    assert np.trace(lost) == pytest.approx(values[10:].sum(), rel=1e-8)


@pytest.mark.parametrize("shape", [(24,), SHAPE, (2, 3, 4)], ids=str)
def test_filters_are_circulant(rows, shape):
    """The response to a point, moved along, is the whole matrix; constants pass, or vanish."""
    for step, constant in ((pre.LowPass(0.8), 1.0), (pre.DifferenceOfGaussians(0.5, 1.2), 0.0)):
        apply = step.fit(rows, shape)
        matrix = apply(np.eye(SIZE))
        kernel = matrix[0].reshape(shape)
        np.testing.assert_allclose(matrix, lf.lattice.matrix(kernel), atol=1e-14)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        np.testing.assert_allclose(apply(np.full((1, SIZE), 3.0)), 3.0 * constant, atol=1e-13)
        np.testing.assert_allclose(apply(rows), rows @ matrix, atol=1e-12 * np.abs(rows).max())


def test_a_low_pass_is_a_gaussian():
    """On a long ring the response to a point is the normal density."""
    kernel = pre.LowPass(3.0).fit(np.zeros((2, 80)), (80,))(np.eye(80)[:1])[0]
    x = np.arange(-20, 21)
    wanted = np.exp(-(x**2) / 18) / np.sqrt(18 * np.pi)
    np.testing.assert_allclose(np.roll(kernel, 20)[:41], wanted, atol=1e-10)


def test_blurs_add_up_by_squares(rows):
    one = pre.LowPass(3.0 / 5).fit(rows, SHAPE)(pre.LowPass(4.0 / 5).fit(rows, SHAPE)(rows))
    np.testing.assert_allclose(pre.LowPass(1.0).fit(rows, SHAPE)(rows), one, atol=1e-11)


def test_center_surround_is_the_difference_of_two_blurs(rows):
    wide, narrow = (pre.LowPass(s).fit(rows, SHAPE)(rows) for s in (1.5, 0.5))
    found = pre.DifferenceOfGaussians(0.5, 1.5).fit(rows, SHAPE)(rows)
    np.testing.assert_allclose(found, narrow - wide, atol=1e-11)
    with pytest.raises(lf.InputError, match="wider than the center"):
        pre.DifferenceOfGaussians(2.0, 1.0)


def test_contrast_normalization_keeps_the_form_alone(rows):
    step = pre.ContrastNormalize(floor=0).fit(rows, SHAPE)
    x = step(rows)
    np.testing.assert_allclose(x.mean(axis=1), 0, atol=1e-13)
    np.testing.assert_allclose(x.var(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(step(7 * rows + 3), x, atol=1e-10)
    softer = pre.ContrastNormalize(floor=0.5).fit(rows, SHAPE)(rows)
    contrast, usual = rows.var(axis=1), rows.var(axis=1).mean()
    np.testing.assert_allclose(softer.var(axis=1), contrast / (contrast + usual / 4), rtol=1e-12)
    np.testing.assert_array_equal(step(np.full((1, SIZE), 2.0)), 0)
    with pytest.raises(lf.InputError, match="has no inverse"):
        step.inverse(x)


def test_saturation_makes_the_papers_law_of_normal_data(rows):
    """Against the closed kurtosis of erf(gZ) at normal scores, which stand for a normal law; and
    undone exactly.
    """
    from scipy.special import erf, ndtri

    x = ndtri((np.arange(24_000) + 0.5) / 24_000).reshape(-1, SIZE)
    for gain in (0.3, 1.0, 100.0):
        step = pre.Saturate(gain).fit(x, SHAPE)
        y = step(x)
        law = lf.stimuli.NLGP((SIZE,), xi=1, gain=gain).marginal()
        assert (y**4).mean() / (y**2).mean() ** 2 - 3 == pytest.approx(
            law.excess_kurtosis, abs=2e-3
        )
        np.testing.assert_allclose(
            pre.Saturate(gain).fit(7 * x, SHAPE)(7 * x), y, atol=1e-12
        )  # in any unit
    step = pre.Saturate(1.0).fit(rows, SHAPE)
    deviation = np.sqrt((rows**2).mean())
    np.testing.assert_allclose(step(rows), erf(rows / deviation), rtol=1e-12)
    some = rows[np.abs(rows).max(axis=1) < 2 * deviation]
    assert len(some) > 20
    np.testing.assert_allclose(step.inverse(step(some)), some, atol=1e-10 * deviation)
    assert np.isfinite(step.inverse(np.array([[1.0, -1.0]]))).all()


def test_a_window_fades_toward_the_edge():
    step = pre.Window(0.35).fit(np.zeros((2, 64)), (8, 8))
    taper = step(np.ones((1, 64))).reshape(8, 8)
    assert np.unravel_index(taper.argmax(), (8, 8)) == (4, 4) and taper.max() == 1
    assert taper[0].max() < 0.4 and taper[:, 0].max() < 0.4
    np.testing.assert_allclose(taper[4, 4 + 2], np.exp(-0.5 * (2 / (0.35 * 8)) ** 2), rtol=1e-12)


@pytest.mark.parametrize("shape", [(24,), SHAPE], ids=str)
def test_wrapping_takes_off_the_seam(rows, shape):
    step = pre.Wrap().fit(rows, shape)
    matrix = step(np.eye(SIZE))
    np.testing.assert_allclose(step(rows), rows @ matrix, atol=1e-11)
    np.testing.assert_allclose(step(rows).mean(axis=1), rows.mean(axis=1), atol=1e-12)
    # What is taken off is harmonic but for the borders: its Laplacian is the jumps across them.
    smooth = (rows - step(rows)).reshape(-1, *shape)
    patch = rows.reshape(-1, *shape)
    laplacian, jumps = np.zeros_like(smooth), np.zeros_like(smooth)
    for axis in range(1, smooth.ndim):
        laplacian += np.roll(smooth, 1, axis) + np.roll(smooth, -1, axis) - 2 * smooth
        across = np.roll(patch, 1, axis) - patch
        first = [slice(None)] * patch.ndim
        first[axis] = 0
        last = list(first)
        last[axis] = -1
        jumps[tuple(first)] += across[tuple(first)]
        jumps[tuple(last)] -= across[tuple(first)]
    np.testing.assert_allclose(laplacian, jumps, atol=1e-11)
    # A ramp is all seam; on a ring nothing but rounding and its mean is left of it.
    if len(shape) == 1:
        ramp = np.arange(24.0)[None]
        assert np.ptp(step(ramp)) < 0.15 * np.ptp(ramp)


def test_steps_compose_in_order_and_are_fitted_to_what_is_left(rows):
    steps = (pre.LowPass(0.7), pre.Center(), pre.Whiten(cutoff=1e-4))
    found = lf.stimuli.Samples(rows, SHAPE, preprocess=steps)
    x = rows
    for step in steps:
        x = step.fit(x, SHAPE)(x)
    np.testing.assert_allclose(found.rows, x, atol=1e-10)
    np.testing.assert_array_equal(found.take(np.array([5, 2])), found.rows[[5, 2]])
    typed = lf.stimuli.Samples(
        rows, SHAPE, preprocess="low-pass:sigma=0.7+center+whiten:cutoff=0.0001"
    )
    assert typed == found and lf.from_json(found.to_json()) == found
    assert found != found.replace(preprocess=steps[:2])


def test_white_samples_are_white(rows):
    """Through the stimulus: its declared covariance is the identity to rounding."""
    white = lf.stimuli.Samples(rows, SHAPE, preprocess=("whiten:cutoff=1e-12",))
    np.testing.assert_allclose(white.covariance().reshape(SIZE, SIZE), np.eye(SIZE), atol=1e-8)
    single = lf.stimuli.Samples(rows.astype(np.float32), SHAPE, preprocess=("whiten:cutoff=1e-6",))
    assert np.abs(single.covariance().reshape(SIZE, SIZE) - np.eye(SIZE)).max() < 1e-3


def test_steps_that_leave_nothing_are_refused(rows):
    flat = np.repeat(rows[:, :1], SIZE, axis=1)
    with pytest.raises(
        lf.InputError, match="After the steps of `preprocess` the data are constant"
    ):
        lf.stimuli.Samples(flat, SHAPE, preprocess="contrast-normalize:floor=0")


def test_every_step_keeps_shapes_and_round_trips(rows):
    steps = registered("preprocess")
    assert len(steps) >= 8
    for cls in steps.values():
        step = cls()
        assert step.fit(rows, SHAPE)(rows).shape == rows.shape
        assert repr(lf.from_json(step.to_json())) == repr(step)
