"""Circulant algebra, the Fourier basis and the kernels, against dense linear algebra and the
formula sheet.
"""

import math
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localfields as lf
from localfields import lattice

SHAPES = [(2,), (7,), (12,), (40,), (41,), (4, 6), (5, 4), (3, 5), (3, 4, 2)]
RATIOS = (
    0.05,
    0.10,
    0.125,
    0.15,
    0.175,
    0.20,
    0.25,
    0.30,
    0.50,
    1.0,
)  # ξ/N in the tables of the formula sheet


def sites(shape):
    return np.stack([axis.ravel() for axis in np.indices(shape)], axis=1)


def circulant(row):
    """The matrix M[i, j] = row[j − i]: each line is the row moved to its site."""
    return np.stack([np.roll(row, site, range(row.ndim)).ravel() for site in sites(row.shape)])


def symmetric_row(shape, rng, positive=False):
    """A random row with C(d) = C(−d); with positive eigenvalues if asked."""
    values = rng.normal(size=shape)
    transform = np.fft.fftn(values)
    return np.fft.ifftn(np.abs(transform) ** 2 + 0.1 if positive else transform.real).real


def digits(value, text):
    """Whether a value rounds to the digits printed."""
    mantissa = text.lstrip("−-").split("e")[0]
    count = len(mantissa.replace(".", "").lstrip("0"))
    return float(f"{value:.{count - 1}e}") == float(text.replace("−", "-"))


@pytest.fixture
def rng(key):
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


# -- circulant operators ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_distance_is_the_shortest_way_around(shape):
    wanted = []
    for place in sites(shape):
        images = np.stack(
            np.meshgrid(*[[p - n, p, p + n] for p, n in zip(place, shape, strict=True)]), axis=-1
        )
        wanted.append(np.linalg.norm(images.reshape(-1, len(shape)), axis=1).min())
    np.testing.assert_allclose(lattice.distance(shape).ravel(), wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrix_is_circulant(shape, rng):
    row = rng.normal(size=shape)
    np.testing.assert_array_equal(lattice.matrix(row), circulant(row))
    np.testing.assert_array_equal(np.asarray(lattice.matrix(jnp.asarray(row))), circulant(row))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_spectrum_and_row_are_the_eigenvalues(shape, rng):
    row = symmetric_row(shape, rng)
    result = lattice.spectrum(row)
    assert result.shape == shape
    wanted = np.linalg.eigvalsh(circulant(row))
    np.testing.assert_allclose(
        np.sort(result.ravel()), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max()
    )
    np.testing.assert_allclose(lattice.row_of(result), row, rtol=0, atol=1e-13 * np.abs(row).max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_and_filter_are_matrix_products(shape, rng):
    row, x = symmetric_row(shape, rng), rng.normal(size=(3, *shape))
    wanted = (x.reshape(3, -1) @ circulant(row)).reshape(x.shape)
    slack = 1e-12 * np.abs(wanted).max()
    for convert in (np.asarray, jnp.asarray):
        result = lattice.product(convert(row), convert(x))
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=0, atol=slack)
        result = lattice.filtered(convert(lattice.spectrum(row)), convert(x))
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=0, atol=slack)
    np.testing.assert_allclose(lattice.product(row, x[0]), wanted[0], rtol=0, atol=slack)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_takes_a_row_that_is_not_symmetric(shape, rng):
    """The convolution (row ⋆ x)_i = Σ_j row_{i−j} x_j: the transpose of `matrix` acts."""
    row, x = rng.normal(size=shape), rng.normal(size=shape)
    wanted = (circulant(row).T @ x.ravel()).reshape(shape)
    np.testing.assert_allclose(
        lattice.product(row, x), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max()
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_root_and_inverse(shape, rng):
    row = symmetric_row(shape, rng, positive=True)
    dense = circulant(row)
    root = circulant(lattice.root(row))
    np.testing.assert_allclose(root, root.T, rtol=0, atol=1e-12 * np.abs(root).max())
    np.testing.assert_allclose(root @ root, dense, rtol=0, atol=1e-12 * np.abs(dense).max())
    assert np.linalg.eigvalsh(root).min() > 0
    inverse = circulant(lattice.inverse(row))
    condition = np.linalg.cond(dense)
    np.testing.assert_allclose(
        inverse @ dense, np.eye(len(dense)), rtol=0, atol=1e-14 * condition * len(dense)
    )


def test_root_cuts_negative_eigenvalues():
    row = lattice.row_of(np.array([4.0, -1.0, 9.0, -1.0]))
    np.testing.assert_allclose(
        lattice.spectrum(lattice.root(row)), [2, 0, 3, 0], rtol=0, atol=1e-14
    )


def test_inverse_refuses_a_singular_row():
    with pytest.raises(lf.InputError, match="cannot be inverted"):
        lattice.inverse(np.ones(6))


@pytest.mark.parametrize("by", [0, 1, -2, 15])
def test_shifted_moves_the_pattern(by):
    x = np.arange(24.0).reshape(2, 12)
    for convert in (np.asarray, jnp.asarray):
        moved = np.asarray(lattice.shifted(convert(x), by))
        for site in range(12):
            np.testing.assert_array_equal(moved[:, (site + by) % 12], x[:, site])


def test_shifted_moves_each_axis():
    x = np.arange(2 * 4 * 6.0).reshape(2, 4, 6)
    moved = lattice.shifted(x, (1, -2), axes=2)
    for i in range(4):
        for j in range(6):
            np.testing.assert_array_equal(moved[:, (i + 1) % 4, (j - 2) % 6], x[:, i, j])
    np.testing.assert_array_equal(lattice.shifted(x, 1, axes=2), lattice.shifted(x, (1, 1), axes=2))


vectors = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.floats(-10, 10, width=32), min_size=n, max_size=n).map(np.array)] * 3
    )
)


@given(vectors, st.floats(-3, 3), st.floats(-3, 3))
@settings(deadline=None, derandomize=True)
def test_product_is_linear(arrays, a, b):
    row, x, y = arrays
    together = lattice.product(row, a * x + b * y)
    apart = a * lattice.product(row, x) + b * lattice.product(row, y)
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-9)


@given(vectors, st.integers(-20, 20))
@settings(deadline=None, derandomize=True)
def test_circulant_operators_commute_with_shifts(arrays, by):
    row, x, _ = arrays
    moved = lattice.product(row, lattice.shifted(x, by))
    np.testing.assert_allclose(
        moved, lattice.shifted(lattice.product(row, x), by), rtol=0, atol=1e-9
    )


@given(vectors)
@settings(deadline=None, derandomize=True)
def test_circulant_matrices_commute_and_multiply_by_their_rows(arrays):
    row, other, x = arrays
    both = lattice.product(row, lattice.product(other, x))
    np.testing.assert_allclose(
        lattice.product(other, lattice.product(row, x)), both, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(
        lattice.product(lattice.product(row, other), x), both, rtol=0, atol=1e-7
    )


# -- the Fourier basis -----------------------------------------------------------------------------

BASES = [(40,), (41,), (2,), (3,), (4, 6), (5, 4), (3, 5), (4, 3, 2)]


@pytest.mark.parametrize("shape", BASES, ids=str)
def test_fourier_basis_is_orthonormal(shape):
    basis = lattice.fourier_basis(shape)
    assert basis.shape == (math.prod(shape), math.prod(shape))
    assert np.abs(basis.T @ basis - np.eye(len(basis))).max() < 1e-13
    assert np.abs(basis @ basis.T - np.eye(len(basis))).max() < 1e-13


@pytest.mark.parametrize("shape", BASES, ids=str)
def test_fourier_basis_diagonalizes_correlations(shape):
    """Σ of a kernel that is even along each axis; the eigenvalue of a column is the spectrum at
    its frequency.
    """
    row = lf.lattice.Periodized().correlation(shape, 1.3)
    basis, frequencies = lattice.fourier_basis(shape), lattice.fourier_frequencies(shape)
    rotated = basis.T @ circulant(row) @ basis
    eigenvalues = lattice.spectrum(row)[tuple(frequencies.T)]
    assert np.abs(rotated - np.diag(eigenvalues)).max() < 1e-13 * len(basis)


@pytest.mark.parametrize("shape", BASES, ids=str)
def test_fourier_basis_is_sorted_by_frequency(shape):
    frequencies = lattice.fourier_frequencies(shape)
    lengths = np.linalg.norm(frequencies, axis=1)
    assert (np.diff(lengths) >= 0).all()
    assert (frequencies[0] == 0).all()
    np.testing.assert_allclose(
        lattice.fourier_basis(shape)[:, 0], 1 / math.sqrt(math.prod(shape)), rtol=1e-15
    )
    # Each column oscillates at its frequency and no other.
    power = np.abs(
        np.fft.fftn(
            lattice.fourier_basis(shape).T.reshape(-1, *shape), axes=range(1, 1 + len(shape))
        )
    )
    for column, frequency in zip(power, frequencies, strict=True):
        places = np.argwhere(column > 1e-9)
        assert (np.minimum(places, np.array(shape) - places) == frequency).all()


def test_fourier_basis_on_a_ring_begins_with_cosine_and_sine():
    x, basis = np.arange(40), lattice.fourier_basis((40,))
    np.testing.assert_allclose(
        basis[:, 1], math.sqrt(2 / 40) * np.cos(2 * np.pi * x / 40), rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(
        basis[:, 2], math.sqrt(2 / 40) * np.sin(2 * np.pi * x / 40), rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(basis[:, 39], (-1.0) ** x / math.sqrt(40), rtol=0, atol=1e-15)


@pytest.mark.parametrize("n", [40, 41])
def test_real_parts_of_dft_columns_are_not_unit_vectors(n):
    """Notes 001 and 004 take them for a basis: the factor √2 is missing, except at k = 0 and
    N/2.
    """
    columns = (np.exp(2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) / math.sqrt(n)).real
    whole = [0, n // 2] if n % 2 == 0 else [0]
    norms = np.linalg.norm(columns, axis=0)
    np.testing.assert_allclose(norms[whole], 1, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.delete(norms, whole), 1 / math.sqrt(2), rtol=0, atol=1e-13)
    cosines = lattice.fourier_basis((n,))[:, 1::2][:, : (n - 1) // 2]
    np.testing.assert_allclose(
        cosines, math.sqrt(2) * columns[:, 1 : (n + 1) // 2], rtol=0, atol=1e-13
    )


# -- kernels ---------------------------------------------------------------------------------------

LEAST = "3.7e-4 −1.2e-11 −9.2e-8 −1.2e-5 −2.6e-4 −2.2e-3 −2.9e-2 −8.2e-2 −0.78 −0.41".split()
INFLATED = "0 9e-13 1.9e-8 3.0e-6 5.8e-5 3.9e-4 4.1e-3 1.05e-2 6.3e-2 3.3e-2".split()
CHANGED = "0 2e-12 3e-8 4e-6 7e-5 5e-4 5e-3 1.3e-2 7.8e-2 4.6e-2".split()


@pytest.mark.parametrize(
    "ratio, least, inflated, changed", list(zip(RATIOS, LEAST, INFLATED, CHANGED, strict=True))
)
def test_table_of_the_squared_exponential(ratio, least, inflated, changed):
    """Formula sheet §1.1 at N = 40: how indefinite the wrapped kernel is, and what cutting does
    to it.
    """
    row = np.exp(-((lattice.distance((40,)) / (40 * ratio)) ** 2))
    eigenvalues = lattice.spectrum(row)
    assert digits(eigenvalues.min(), least)
    kernel = lattice.SquaredExponential()
    correlation = kernel.correlation((40,), 40 * ratio)
    difference, distortion = (
        np.maximum(eigenvalues, 0).mean() - 1,
        kernel.distortion((40,), 40 * ratio),
    )
    if inflated == "0":
        assert abs(difference) < 1e-15 and distortion < 1e-15
    else:
        assert digits(difference, inflated) and digits(distortion, changed)
    assert distortion == pytest.approx(np.abs(correlation - row).max(), rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("shape", [(40,), (41,), (10, 12), (9, 7)], ids=str)
@pytest.mark.parametrize("kernel", [lattice.SquaredExponential(), lattice.Periodized()], ids=repr)
@pytest.mark.parametrize("ratio", [0.01, *RATIOS, 3.0])
def test_kernels_are_correlations(shape, kernel, ratio):
    """Unit variance, symmetric, never indefinite, whatever the lengthscale."""
    row = kernel.correlation(shape, ratio * max(shape))
    assert row.shape == shape
    assert abs(row.flat[0] - 1) < 1e-14
    assert np.linalg.eigvalsh(circulant(row)).min() > -1e-13 * row.size
    np.testing.assert_allclose(circulant(row), circulant(row).T, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize("ratio", [0.002, *RATIOS, 3.0])
def test_periodized_kernel_is_the_sum_over_images(n, ratio):
    """The eigenvalues are found by Poisson summation; here the images are summed on the lattice."""
    xi = ratio * n
    images = np.arange(n)[:, None] + n * np.arange(-200, 201)[None, :]
    direct = np.exp(-((images / xi) ** 2)).sum(axis=1)
    np.testing.assert_allclose(
        lattice.Periodized().correlation((n,), xi), direct / direct[0], rtol=0, atol=1e-13
    )
    [eigenvalues] = lattice.Periodized().spectra((n,), xi)
    assert (eigenvalues >= 0).all()
    # λ_k = ξ√π Σ_m exp(−(πξ(k + mN)/N)²), over the normalization c_0.
    frequencies = np.arange(n)[:, None] + n * np.arange(-1000, 1001)[None, :]
    poisson = xi * math.sqrt(math.pi) * np.exp(-((np.pi * xi * frequencies / n) ** 2)).sum(axis=1)
    np.testing.assert_allclose(eigenvalues, poisson / direct[0], rtol=0, atol=1e-13 * n)


@pytest.mark.parametrize("kernel", [lattice.SquaredExponential(), lattice.Periodized()], ids=repr)
def test_kernels_on_a_torus_are_products(kernel):
    row = kernel.correlation((10, 12), 2.0)
    wanted = np.multiply.outer(kernel.correlation((10,), 2.0), kernel.correlation((12,), 2.0))
    np.testing.assert_allclose(row, wanted, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "shape", [(20,), (40,), (41,), (100,), (101,), (400,), (40, 40), (20, 20, 20)], ids=str
)
def test_the_warning_begins_beyond_a_ratio_of_015(shape):
    n = shape[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ratio in (0.05, 0.10, 0.125, 0.15):
            lf.stimuli.Gaussian(shape, xi=ratio * n)
        for ratio in (0.15, 0.5, 2.0):
            lf.stimuli.Gaussian(shape, xi=ratio * n, kernel="periodized")
    for ratio in (0.175, 0.25, 0.5):
        with pytest.warns(UserWarning, match="not positive"):
            lf.stimuli.Gaussian(shape, xi=ratio * n)


@pytest.mark.parametrize(
    "make", [lf.stimuli.Gaussian, lf.stimuli.NLGP, lf.stimuli.StudentT, lf.stimuli.Copula]
)
def test_the_warning_states_the_distortion(make):
    with pytest.warns(UserWarning, match="not positive") as caught:
        make((40,), xi=10)
    [warning] = caught
    text = str(warning.message)
    assert "ξ = 10.0" in text and "(40,)" in text
    assert "by up to 0.005" in text  # formula sheet §1.1: 5e-3 at ξ/N = 0.25
    assert "periodized" in text


def test_the_warning_points_at_the_users_line():
    """In a process of its own: the type checks of this suite put frames between."""
    code = "import localfields as lf\n\nlf.stimuli.Gaussian((40,), xi=10)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("<string>:3: UserWarning: The kernel is not positive")


@pytest.mark.parametrize("xi", [4.0, 10.0, 20.0])
def test_the_distortion_on_a_torus_is_that_of_the_product(xi):
    kernel, shape = lattice.SquaredExponential(), (20, 30)
    rows = [np.exp(-((lattice.distance((n,)) / xi) ** 2)) for n in shape]
    change = np.abs(kernel.correlation(shape, xi) - np.multiply.outer(*rows)).max()
    assert kernel.distortion(shape, xi) == pytest.approx(change, rel=1e-9)


def test_kernel_as_a_function_of_distance():
    made = lf.stimuli.Gaussian((12,), xi=2.0, kernel=lambda d: np.exp(-d))
    np.testing.assert_allclose(
        made.covariance(), np.exp(-lattice.distance((12,)) / 2), rtol=0, atol=1e-14
    )
    torus = lf.stimuli.NLGP((4, 6), xi=0.7, kernel=lambda d: np.exp(-d))
    np.testing.assert_allclose(
        torus.latent_correlation(), np.exp(-lattice.distance((4, 6)) / 0.7), rtol=0, atol=1e-14
    )


def test_kernel_as_a_row():
    row = 0.6 ** lattice.distance((9,))
    made = lf.stimuli.Gaussian((9,), kernel=row)
    np.testing.assert_allclose(made.covariance(), row, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        lf.stimuli.Gaussian((9,), kernel=list(row)).covariance(), row, rtol=0, atol=1e-14
    )


def test_a_row_that_is_indefinite_is_cut_and_told():
    row = np.array([1.0, 0.9, 0.0, 0.0, 0.0, 0.9])
    with pytest.warns(UserWarning, match="not positive"):
        made = lf.stimuli.Gaussian((6,), kernel=row)
    covariance = made.covariance()
    assert covariance[0] == pytest.approx(1, abs=1e-14)
    assert lattice.spectrum(covariance).min() > -1e-13


def asymmetric(n):
    row = 0.5 ** lattice.distance((n,))
    row[1] += 0.01
    return row


@pytest.mark.parametrize(
    "kernel, says",
    [
        (np.ones(11), r"has shape \(11,\), and the lattice has \(12,\)"),
        (asymmetric(12), "mirror image by 0.01"),
        (2 * 0.5 ** lattice.distance((12,)), "1 at displacement zero, got 2"),
        (lambda d: d * math.nan, "12 values that are nan or infinite"),
        (lambda d: 1 / 0, "function failed: division"),
        (lambda d: d[:3], "and the lattice has"),
        ("periodised", "Did you mean 'periodized'"),
        (lf.marginals.Laplace(), "a kernel"),
    ],
)
def test_kernels_that_are_none_are_refused(kernel, says):
    with pytest.raises(lf.InputError, match=says):
        lf.stimuli.Gaussian((12,), kernel=kernel)


def test_a_fixed_row_has_no_lengthscale_to_sweep():
    with pytest.raises(lf.InputError, match="fixed lengthscale"):
        lf.stimuli.Gaussian((3,), xi=[1.0, 2.0], kernel=[1.0, 0.2, 0.2])


@pytest.mark.parametrize("shape", [(12,), (9,), (4, 6), (3, 4, 2), (200,), (170, 2)], ids=str)
@pytest.mark.parametrize("kernel", ["periodized", "row"])
def test_coloring_is_the_symmetric_root(shape, kernel, key):
    """Whichever of the two ways is taken (dense roots on small axes, FFT on large ones and for
    rows).
    """
    chosen = lattice.Periodized()
    if kernel == "row":
        chosen = lattice.Given(0.4 ** lattice.distance(shape))
    white = np.asarray(jax.random.normal(key, (3, *shape)))
    row = lattice.root(chosen.correlation(shape, 1.1))
    wanted = lattice.product(row, white)
    result = np.asarray(jax.jit(lambda x: lattice.colored(x, chosen, shape, 1.1))(white))
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-11)
