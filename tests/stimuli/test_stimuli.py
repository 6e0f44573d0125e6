"""What each stimulus declares of itself, against enumeration and formulas; what it refuses.
Samples are in laws/.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laws.statistics import covariance_matrix

import localfields as lf
from localfields import stimuli
from localfields._spec import registered

# -- exact statistics ------------------------------------------------------------------------------


def intervals(n, lengths):
    return [(np.arange(n) - start) % n < length for start in range(n) for length in lengths]


def atoms_of_single_pulse(stimulus):
    """Every outcome, all equally likely: a place and a length on each axis."""
    lengths = range(stimulus.shortest, stimulus.longest + 1)
    for chosen in itertools.product(*[intervals(n, lengths) for n in stimulus.shape]):
        pulse = chosen[0]
        for other in chosen[1:]:
            pulse = np.multiply.outer(pulse, other)
        yield pulse.ravel().astype(float)


def atoms_of_block_pulse(stimulus):
    for corner in itertools.product(*[range(0, n, stimulus.length) for n in stimulus.shape]):
        pulse = np.zeros(stimulus.shape)
        pulse[tuple(slice(start, start + stimulus.length) for start in corner)] = 1
        yield pulse.ravel()


@pytest.mark.parametrize("coding", ["signs", "zero-one"])
@pytest.mark.parametrize(
    "make, atoms",
    [
        (lambda c: stimuli.SinglePulse((12,), 2, 5, coding=c), atoms_of_single_pulse),
        (lambda c: stimuli.SinglePulse((9,), 1, 1, coding=c), atoms_of_single_pulse),
        (lambda c: stimuli.SinglePulse((9,), 3, 9, coding=c), atoms_of_single_pulse),
        (lambda c: stimuli.SinglePulse((4, 6), 2, 4, coding=c), atoms_of_single_pulse),
        (lambda c: stimuli.BlockPulse((12,), 3, coding=c), atoms_of_block_pulse),
        (lambda c: stimuli.BlockPulse((9,), 3, coding=c), atoms_of_block_pulse),
        (lambda c: stimuli.BlockPulse((4, 6), 2, coding=c), atoms_of_block_pulse),
        (lambda c: stimuli.BlockPulse((4, 8), 4, coding=c), atoms_of_block_pulse),
    ],
)
def test_pulses_against_enumeration(make, atoms, coding):
    stimulus = make(coding)
    outcomes = np.stack(list(atoms(stimulus)))
    if coding == "signs":
        outcomes = np.concatenate([2 * outcomes - 1, 1 - 2 * outcomes])
    mean = outcomes.mean(axis=0)
    np.testing.assert_allclose(mean, stimulus.mean(), rtol=0, atol=1e-15)
    wanted = outcomes.T @ outcomes / len(outcomes) - np.outer(mean, mean)
    np.testing.assert_allclose(covariance_matrix(stimulus), wanted, rtol=0, atol=1e-14)
    values, counts = np.unique(outcomes, return_counts=True)
    law = stimulus.marginal()
    np.testing.assert_allclose(
        law.cdf(values), np.cumsum(counts) / counts.sum(), rtol=0, atol=1e-14
    )
    assert law.mean == pytest.approx(stimulus.mean(), abs=1e-15)
    assert law.variance == pytest.approx(wanted[0, 0], abs=1e-14)


def test_pulse_samples_are_pulses(key):
    """Each draw is one of the outcomes, and all of them occur."""
    for stimulus, atoms in [
        (stimuli.SinglePulse((6,), 2, 3, coding="zero-one"), atoms_of_single_pulse),
        (stimuli.BlockPulse((4, 6), 2, coding="zero-one"), atoms_of_block_pulse),
    ]:
        drawn = {tuple(row) for row in np.asarray(stimulus.sample(key, 2000)).tolist()}
        assert drawn == {tuple(atom.tolist()) for atom in atoms(stimulus)}


@pytest.mark.parametrize("shape", [(12,), (9,), (4, 6)], ids=str)
def test_covariances_through_a_copula(shape):
    r = lf.lattice.Periodized().correlation(shape, 0.9)
    at = {"xi": 0.9, "kernel": "periodized"}
    np.testing.assert_allclose(
        stimuli.Gaussian(shape, **at, scale=2.0).covariance(), 4 * r, rtol=0, atol=1e-14
    )
    rho = 2 * 9 / 19
    wanted = np.arcsin(rho * np.minimum(r, 1)) / np.arcsin(rho)
    np.testing.assert_allclose(
        stimuli.NLGP(shape, **at, gain=3.0).covariance(), wanted, rtol=0, atol=1e-14
    )
    law = lf.marginals.Algebraic(3.0)
    np.testing.assert_allclose(
        stimuli.Kur(shape, **at, k=3.0).covariance(), law.correlation(r), rtol=0, atol=1e-14
    )
    skewed = stimuli.Copula(shape, **at, marginal_law=lambda u: -np.log1p(-u))
    assert skewed.covariance().flat[0] == pytest.approx(1, abs=1e-9)
    assert skewed.marginal().mean == pytest.approx(0, abs=1e-12)
    for stimulus in (skewed, stimuli.Kur(shape, **at, k=2.2), stimuli.Copula(shape, **at)):
        assert 0 <= stimulus.covariance_error() < 1e-8
    for cls in (
        stimuli.StudentT,
        stimuli.EllipticalShell,
        stimuli.EllipticalExtreme,
        stimuli.Elliptical,
    ):
        np.testing.assert_allclose(cls(shape, **at).covariance(), r, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name, cls", registered("stimulus").items())
def test_defaults_declare_a_law_at_mean_zero_and_unit_variance(name, cls):
    stimulus = cls()
    assert stimulus.mean() == 0
    assert np.diag(covariance_matrix(stimulus)) == pytest.approx(1, abs=1e-9)
    assert stimulus.marginal().variance == pytest.approx(1, abs=1e-9)
    assert np.linalg.eigvalsh(covariance_matrix(stimulus)).min() > -1e-12
    np.testing.assert_allclose(
        covariance_matrix(stimulus), covariance_matrix(stimulus).T, rtol=0, atol=1e-13
    )
    assert stimulus.size == math.prod(stimulus.shape)


# shift, sign, weak dependence, elliptical: the assumptions S2, S3 and S1 of the paper, and
# Definition 1
DECLARED = [
    (stimuli.Gaussian(12, xi=1), "yes yes yes yes"),
    (stimuli.Gaussian(12, xi=1, offset=0.1), "yes no yes yes"),
    (stimuli.NLGP(12, xi=1), "yes yes yes no"),
    (stimuli.Kur(12, xi=1, k=3), "yes yes yes no"),
    (stimuli.Copula(12, xi=1), "yes yes yes no"),
    (stimuli.Copula(12, xi=1, marginal_law=lambda u: -np.log1p(-u)), "yes no yes no"),
    (stimuli.Copula(12, xi=1, marginal_law=lambda u: u), "yes yes yes no"),
    (stimuli.DenseGaussian(), "no yes yes yes"),
    (stimuli.DenseGaussian(offset=1.0), "no no yes yes"),
    (stimuli.Ising(12), "yes yes yes no"),
    (stimuli.StudentT(12, xi=1), "yes yes no yes"),
    (stimuli.EllipticalShell(12, xi=1), "yes yes no yes"),
    (stimuli.EllipticalExtreme(12, xi=1), "yes yes no yes"),
    (stimuli.Elliptical(12, xi=1), "yes yes no yes"),
    (stimuli.SinglePulse(12), "yes yes no no"),
    (stimuli.SinglePulse(12, coding="zero-one"), "yes no no no"),
    (stimuli.BlockPulse(12), "no yes no no"),
    (stimuli.BlockPulse(12, coding="zero-one"), "no no no no"),
    (stimuli.Samples(), "no no yes no"),
    (stimuli.Samples(symmetry="shifts"), "yes no yes no"),
    (stimuli.Samples(symmetry="shifts-and-signs"), "yes yes yes no"),
    (stimuli.ImagePatches(shape=(8, 8), patches=100), "no no no no"),
    (stimuli.DeadLeaves((16, 16), ratio=3), "yes yes yes no"),
    (stimuli.DeadLeaves((16, 16)), "yes yes no no"),
    (
        stimuli.DeadLeaves(12, ratio=2, gray=lf.marginals.Empirical([-1.0, 0.0, 3.0])),
        "yes no yes no",
    ),
]


@pytest.mark.parametrize("stimulus, flags", DECLARED, ids=lambda value: repr(value)[:60])
def test_declared_assumptions(stimulus, flags):
    found = [
        stimulus.translation_invariant,
        stimulus.sign_symmetric,
        stimulus.weakly_dependent,
        stimulus.elliptical,
    ]
    assert ["yes" if flag else "no" for flag in found] == flags.split()


def test_every_class_has_its_assumptions_here():
    assert {type(stimulus) for stimulus, _ in DECLARED} >= set(registered("stimulus").values()) & {
        getattr(stimuli, name) for name in dir(stimuli) if isinstance(getattr(stimuli, name), type)
    } - {stimuli.Stimulus}


def test_limits_of_the_nonlinear_gaussian_process():
    at = {"xi": 1.0}
    gaussian = stimuli.Gaussian(12, **at).covariance()
    np.testing.assert_allclose(
        stimuli.NLGP(12, **at, gain=1e-4).covariance(), gaussian, rtol=0, atol=1e-7
    )
    sharp = stimuli.Copula(12, **at, marginal_law=lf.marginals.TwoPoint()).covariance()
    np.testing.assert_allclose(
        stimuli.NLGP(12, **at, gain=1e6).covariance(), sharp, rtol=0, atol=1e-5
    )


def test_two_point_copulas_draw_signs_alone(key):
    stimulus = stimuli.Copula(12, xi=1.0, marginal_law=lf.marginals.TwoPoint())
    assert set(np.unique(np.asarray(stimulus.sample(key, 10_000)))) == {-1.0, 1.0}
    # An exact zero of the latent, which float32 draws once in some 10⁷, is no third value.
    zeros = jnp.array([-0.0, 0.0], jnp.float32)
    assert set(np.abs(np.asarray(lf.marginals.TwoPoint().from_normal(zeros)))) == {1.0}


# -- the inverse problem ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls, values",
    [
        (stimuli.NLGP, {"gain": 1.0}),
        (stimuli.NLGP, {"gain": 100.0}),
        (stimuli.Kur, {"k": 3.0}),
        (stimuli.Copula, {"marginal_law": lf.marginals.TwoPoint()}),
        (stimuli.Copula, {"marginal_law": lambda u: -np.log1p(-u)}),
        (stimuli.Gaussian, {}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@pytest.mark.parametrize("shape", [(12,), (9,), (4, 6)], ids=str)
def test_with_correlation_solves_for_the_output(cls, values, shape):
    wanted = 0.25 ** lf.lattice.distance(shape)
    stimulus = cls.with_correlation(wanted, **values)
    assert stimulus.shape == shape
    np.testing.assert_allclose(stimulus.covariance(), wanted, rtol=0, atol=1e-9)


def test_with_correlation_refuses_what_no_gaussian_gives():
    """A triangle that ends in a corner: positive itself, but not behind a sign function."""
    wanted = np.maximum(1 - lf.lattice.distance((12,)) / 2, 0)
    assert lf.lattice.spectrum(wanted).min() > -1e-12
    with pytest.raises(
        lf.InputError,
        match="No Gaussian copula .* an eigenvalue of -0",
    ):
        stimuli.Copula.with_correlation(wanted, marginal_law=lf.marginals.TwoPoint())


def test_with_correlation_refuses_what_the_marginal_cannot_reach():
    wanted = (-0.9) ** lf.lattice.distance((12,))
    with pytest.raises(lf.InputError, match="correlation"):
        stimuli.Copula.with_correlation(wanted, marginal_law=lambda u: -np.log1p(-u))


# -- drawing ---------------------------------------------------------------------------------------


def test_a_key_or_a_whole_number():
    draw = stimuli.Ising(6).sample
    np.testing.assert_array_equal(draw(3, 10), draw(np.int64(3), 10))
    np.testing.assert_array_equal(draw(jax.random.key(3), 10), draw(jax.random.PRNGKey(3), 10))
    assert not np.array_equal(draw(3, 10), draw(4, 10))


@pytest.mark.parametrize("key", ["0", -1, 1.5, None, True, np.zeros(2)], ids=repr)
def test_keys_that_are_none_are_refused(key):
    with pytest.raises(lf.InputError, match="key"):
        stimuli.Ising(6).sample(key, 10)


@pytest.mark.parametrize("num", [0, -3, True, 2**40], ids=repr)
def test_counts_that_are_none_are_refused(num):
    with pytest.raises(lf.InputError, match="num"):
        stimuli.Ising(6).sample(0, num)


def test_too_large_a_draw_is_refused():
    with pytest.raises(lf.InputError, match="pieces"):
        stimuli.Gaussian((1000, 1000)).sample(0, 10**6)


def test_a_sweep_cannot_be_sampled_at_once():
    sweep = stimuli.NLGP(12, xi=1.0, gain=[1.0, 2.0])
    np.testing.assert_array_equal(sweep.gain, [1.0, 2.0])
    with pytest.raises(lf.InputError, match="`gain`.*2 values"):
        sweep.sample(0, 10)


def test_draws_may_be_mapped_over_a_number(key):
    """Numbers are traced: one program serves a whole sweep, and gives what each value gives by
    itself.
    """
    for make, values in [
        (lambda x: stimuli.NLGP(12, xi=x, gain=x), [0.5, 1.5]),
        (lambda k: stimuli.Kur(12, xi=1.0, k=k), [3.0, 10.0]),
        (lambda j: stimuli.Ising(12, j), [-0.7, 0.7]),
    ]:
        together = jax.jit(jax.vmap(lambda value, make=make: make(value).draw(key, 5)))(
            jnp.array(values)
        )
        alone = [np.asarray(make(value).sample(key, 5)) for value in values]
        np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (1, 5), (3, 2, 4), (170, 2)], ids=str)
def test_any_lattice_can_be_drawn_on(shape, key):
    for stimulus in (
        stimuli.Gaussian(shape, xi=2.0, kernel="periodized"),
        stimuli.SinglePulse(shape, shortest=1, longest=1),
    ):
        x = np.asarray(stimulus.sample(key, 3))
        assert x.shape == (3, math.prod(shape)) and np.isfinite(x).all()


def test_independent_sites_at_a_tiny_lengthscale():
    np.testing.assert_allclose(
        stimuli.Gaussian(12, xi=0.05).covariance(), np.eye(12)[0], rtol=0, atol=1e-15
    )
    periodized = stimuli.Gaussian(12, xi=0.05, kernel="periodized")
    np.testing.assert_allclose(periodized.covariance(), np.eye(12)[0], rtol=0, atol=1e-12)


# -- clones ----------------------------------------------------------------------------------------


def test_clones_are_gaussian_and_keep_two_moments():
    clone = stimuli.SinglePulse(12, coding="zero-one").gaussian_clone()
    assert type(clone) is stimuli.Gaussian and clone.mean() == pytest.approx(0.5)
    clone = stimuli.BlockPulse(12, 3, coding="zero-one").gaussian_clone()
    assert type(clone) is stimuli.DenseGaussian and clone.mean() == pytest.approx(0.25)
    assert clone.gaussian_clone().mean() == clone.mean()
    np.testing.assert_array_equal(clone.gaussian_clone().matrix, clone.matrix)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: stimuli.Ising((4, 6)), "ring"),
        (lambda: stimuli.Ising(12, coupling=25), "below 20"),
        (lambda: stimuli.Gaussian(1), "2 to"),
        (lambda: stimuli.Gaussian(12, xi=0), "positive"),
        (lambda: stimuli.Gaussian(12, scale=0), "positive"),
        (lambda: stimuli.Kur(12, k=2), "variance is infinite"),
        (lambda: stimuli.StudentT(12, nu=2), "variance is infinite"),
        (lambda: stimuli.NLGP(12, gain=0), "Gaussian limit"),
        (lambda: stimuli.NLGP(12, gian=3), "Did you mean 'gain'"),
        (lambda: stimuli.Copula(12, marginal_law="laplas"), "Did you mean 'laplace'"),
        (lambda: stimuli.Copula(12, marginal_law=3), "a marginal"),
        (lambda: stimuli.SinglePulse(12, shortest=5, longest=4), "do not fit on"),
        (lambda: stimuli.SinglePulse((4, 12), shortest=2, longest=5), "≤ 4"),
        (lambda: stimuli.SinglePulse(12, 12, 12, coding="zero-one"), "whole lattice"),
        (lambda: stimuli.SinglePulse(12, coding="sings"), "Did you mean 'signs'"),
        (lambda: stimuli.BlockPulse(12, length=5), "proper divisor"),
        (lambda: stimuli.BlockPulse(12, length=12), "proper divisor"),
        (lambda: stimuli.DenseGaussian(3, np.eye(2)), r"have shape \(3, 3\)"),
        (lambda: stimuli.DenseGaussian(2, [[1, 0.5], [0.4, 1]]), "not symmetric"),
        (lambda: stimuli.DenseGaussian(2, [[1, 2], [2, 1]]), "negative eigenvalue"),
        (lambda: stimuli.Elliptical(12, radial=lambda u: u - 0.5), "cannot be negative"),
        (lambda: stimuli.Elliptical(12, radial=lf.marginals.Laplace()), "quantile function"),
    ],
)
def test_stimuli_that_are_none_are_refused(make, says):
    with pytest.raises(lf.InputError, match=says):
        make()


def test_the_unit_of_the_radius_does_not_matter(key):
    one, other = (
        stimuli.Elliptical(12, xi=1.0, radial=lambda u, c=c: c * (1 + u)) for c in (1.0, 7.0)
    )
    np.testing.assert_allclose(one.sample(key, 100), other.sample(key, 100), rtol=1e-12)
    assert one.marginal().kurtosis == pytest.approx(other.marginal().kurtosis, rel=1e-12)


def test_unknown_names():
    with pytest.raises(AttributeError, match="Isling"):
        stimuli.Isling  # noqa: B018


# -- patterns, gated means and kurtosis ------------------------------------------------------------


def test_states_of_a_small_ring():
    ring = stimuli.Ising(6, coupling=-0.4)
    x, p = ring.atoms()
    assert x.shape == (ring.num_atoms, 6) == (64, 6)
    np.testing.assert_allclose((p * x.T) @ x, ring.covariance_matrix(), rtol=0, atol=1e-14)
    w = np.random.default_rng(0).normal(size=6)
    np.testing.assert_allclose(
        ring.gated_mean(w), (p * np.heaviside(x @ w, 0.5)) @ x, rtol=0, atol=1e-14
    )
    square = (p @ (x @ w) ** 2) ** 2
    assert ring.projection_kurtosis(w) == pytest.approx(p @ (x @ w) ** 4 / square - 3)
    with pytest.raises(lf.InputError, match="32768 patterns on 15 sites are too many"):
        stimuli.Ising(15).atoms()


def test_what_a_stimulus_does_not_know():
    kur, w = stimuli.Kur((8,), xi=1, k=8), np.ones(8)
    assert not kur.has_atoms and kur.num_atoms is None
    assert not kur.has_gated_mean(w) and kur.gated_mean(w) is None
    assert kur.has_gated_mean(np.eye(8)[2])
    assert kur.linear_slope() is None and kur.projection_kurtosis(w) is None
    # With an infinite fourth moment of the sites, every projection has one.
    assert stimuli.Kur((8,), xi=1, k=3).projection_kurtosis(w) == np.inf
    # A mean moves the gate: the closed form is not that of the centered distribution.
    assert stimuli.Gaussian((8,), xi=1, offset=0.5).gated_mean(w) is None


@pytest.mark.parametrize(
    "stimulus",
    [
        stimuli.DenseGaussian((2,), np.ones((2, 2))),
        stimuli.Gaussian((2,), kernel=[1.0, 1.0]),
        stimuli.StudentT((2,), nu=5, kernel=[1.0, 1.0]),
        stimuli.Ising(2, coupling=19),
    ],
    ids=lambda stimulus: type(stimulus).__name__,
)
def test_a_projection_that_never_varies(stimulus):
    """Two sites that are always equal: ⟨(1, −1), X⟩ = 0, a tie, and nothing is divided by its
    variance.
    """
    together, apart, none = np.ones(2), np.array([1.0, -1.0]), np.zeros(2)
    with np.errstate(all="raise"):
        for w in (apart, none):
            np.testing.assert_allclose(stimulus.gated_mean(w), 0, rtol=0, atol=1e-8)
        kurtosis = stimulus.projection_kurtosis(np.stack([together, apart, none]))
    assert np.isfinite(kurtosis[0]) and np.isnan(kurtosis[1:]).all()
    assert (stimulus.gated_mean(together) > 0.1).all()
