"""Working note 2: one neuron, and signals on the hypercube."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import scipy.linalg

import localfields as lf
from localfields.stimuli._ring import enumerate_states, ising_weights
from localfields.theory import ExactIsing, LinearResponse
from localfields.theory.notes.separation import polygon_bound
from localfields.theory.responses.hypercube import bump_response, enumerated_response, ising_fourth

from .common import C0, C1, ISING, P1, field, ising_loss, neuron, spins_response
from .paper import STUDENT, student_mean
from .row import Measured, Source, normal_mean, off, slopes

NOTE2 = Source(
    "Working note 2 (one neuron, the hypercube)",
    "One ReLU neuron through its gated mean $f(w)$, the symmetries of $f$, and data on the hypercube. "
    "The idea, that on $\\lbrace\\pm1\\rbrace^n$ the largest entry takes over, is right and led to the exact steady "
    "state of the library (`hypercube_bump`); the formulas lack factors.",
)
RING = lf.stimuli.Ising((12,), coupling=0.7)
COVARIANCE = lf.lattice.matrix(RING.covariance())


@NOTE2.erratum(
    "(4)",
    r"$\tfrac12f-\tfrac12(\Sigma_0+\Sigma_1)w$",
    r"$f-\tfrac12(\Sigma_0+\Sigma_1)w$, or half of it for the loss with a ½",
)
def flow():
    w = 0.3 * field(9)
    exact = -slopes(ising_loss, w)
    printed = 0.5 * spins_response(w, P1) - 0.5 * (C0 + C1) @ w
    best = printed @ exact / (printed @ printed)  # no unit of time makes it right
    right = neuron(w, ISING, ExactIsing())
    what = "flow on 9 spins, all states summed, by differences of the loss; printed in the unit of time that fits best"
    return Measured(what, off(best * printed, exact), off(right, exact), 1e-9)


def gaussian_response(covariance, w):
    """f of a Gaussian with any covariance, by the library."""
    stimulus = lf.stimuli.DenseGaussian((len(w),), covariance)
    return np.asarray(LinearResponse().response(stimulus)(jnp.asarray(w)))


@NOTE2.erratum(
    "property 4",
    r"$f(Aw)=A^{-\top}f(w)$ if $p(x)=p(Ax)$",
    r"$f(A^\top w)=A^{-1}f(w)$",
    "The same for orthogonal $A$, as in the note's own uses.",
)
def symmetry():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 5))
    covariance = half @ half.T
    lower = np.linalg.cholesky(covariance)
    spin = rng.normal(size=(5, 5))
    a = lower @ scipy.linalg.expm(spin - spin.T) @ np.linalg.inv(lower)  # AX has the law of X
    assert off(a @ covariance @ a.T, covariance) < 1e-10
    w = rng.normal(size=5)
    f = lambda w: gaussian_response(covariance, w)  # noqa: E731
    printed, right = (
        off(np.linalg.solve(a.T, f(w)), f(a @ w)),
        off(np.linalg.solve(a, f(w)), f(a.T @ w)),
    )
    return Measured(
        "both sides for a Gaussian and a linear map that keeps its law", printed, right, 1e-9
    )


@NOTE2.erratum(
    "before (6)",
    r"$f=g(w^\top\Sigma w)\Sigma w$ with $g\sim x^{-1/2}$",
    r"$g(x)=m_1x^{-1/2}$ exactly, $m_1=\mathrm E\lvert X_1\rvert/2\sigma$",
    "A sharpening: $f$ does not change with the length of $w$.",
)
def homogeneity():
    w, sigma1 = field(), lf.lattice.matrix(STUDENT.stimuli[1].covariance())
    response = LinearResponse().response(STUDENT.stimuli[1])
    result, plain, exact = [], [], []
    for scale in (1e-2, 1.0, 1e2):
        x = scale**2 * float(w @ sigma1 @ w)
        along = np.asarray(response(jnp.asarray(scale * w))) @ w / (scale * w @ sigma1 @ w)
        result.append(along * math.sqrt(x))
        plain.append(1.0)
        exact.append(student_mean() / 2)
    what = r"$g(x)\sqrt x$ over four decades of the length, Student's $t_5$, quadrature; printed read as $x^{-1/2}$"
    return Measured(what, off(plain, exact), off(result, exact), 1e-9)


@NOTE2.erratum(
    "(7)",
    r"$X_i=\mathrm{erf}(gZ_i)/\sqrt{\mathcal Z}$, $X\sim\mathcal N$",
    r"$Z\sim\mathcal N$; with the paper's $\mathcal Z$, a standard deviation, $X_i=\mathrm{erf}(gZ_i)/\mathcal Z$",
    "Right if the note's $\\mathcal Z$ is a variance; the two texts use one symbol for two things.",
)
def normalizer():
    law = lf.marginals.ErfNormal(gain=1.0)
    square = normal_mean(lambda z: math.erf(z) ** 2)
    deviation = float(law.deviation())
    what = "variance of an entry at $g=1$ by quadrature, to be 1"
    return Measured(
        what, abs(square / deviation - 1), abs(square / deviation**2 - 1), unit="absolute"
    )


def bumps(sites, heights):
    """A field with few entries."""
    return sum(height * np.eye(12)[site] for site, height in zip(sites, heights, strict=True))


@NOTE2.erratum(
    "(8)–(11)",
    r"$\Sigma e_i$; $\Sigma(e_i+e_j)$; $\Sigma e_i$; $\Sigma e_i$",
    r"$\tfrac12\Sigma e_i$; $\tfrac14\Sigma(e_i+e_j)$; $\tfrac12\Sigma e_i$; $\tfrac12\Sigma e_i$",
)
def few_bumps():
    cases = [([3], [1.0]), ([3, 7], [1.0, 1.0]), ([3, 7], [1.6, 1.0]), ([3, 7], [1.6, -1.0])]
    exact = [enumerated_response(bumps(*case), RING) for case in cases]
    printed = [COVARIANCE[3], COVARIANCE[3] + COVARIANCE[7], COVARIANCE[3], COVARIANCE[3]]
    right = [bump_response(COVARIANCE, *case) for case in cases]
    errors = [
        [off(*pair) for pair in zip(result, exact, strict=True)] for result in (printed, right)
    ]
    what = f"12 spins, $J=0.7$, enumerated; errors up to {max(errors[0]):.0f} times the value; the least of the four"
    return Measured(what, min(errors[0]), max(errors[1]))


@NOTE2.erratum(
    "(12)",
    r"$f(\alpha e_i+\beta e_j+e_k)\approx\Sigma e_i$ for $\alpha>\beta>1$",
    r"$\tfrac12\Sigma e_i$ if $\alpha>\beta+1$; if $\alpha<\beta+1$ a majority vote, "
    r"$\tfrac14(C_i+C_j+C_k-\mathrm E[X_iX_jX_kX])$",
)
def majority():
    worst = []
    for pair in itertools.permutations(range(1, 12), 2):
        sites, heights = [0, *pair], [2.0, 1.5, 1.0]
        exact = enumerated_response(bumps(sites, heights), RING)
        right = bump_response(COVARIANCE, sites, heights, ising_fourth(12, 0.7, sites))
        worst.append([np.abs(value - exact).max() for value in (0.5 * COVARIANCE[0], right)])
    printed, result = np.max(worst, axis=0)
    what = "largest error over all places of three bumps 2, 1.5, 1; printed with its missing ½"
    return Measured(what, float(printed), float(result), unit="absolute")


@NOTE2.erratum(
    "SDP",
    r"$\delta_{\mathrm{INT}}=-\sqrt\delta$",
    r"$-\delta^2$",
    r"The relaxation bounds $\delta$ by $\max(0,2\max\lvert w_i\rvert-\lVert w\rVert_1)$, which is 0 unless one entry "
    "outweighs all others (`polygon_bound`): it does not help.",
)
def integer_program():
    w = field(12)
    states = enumerate_states(12).astype(float)
    exact = float(np.max(-((states @ w) ** 2)))
    delta = lf.theory.separation(w, 12)
    assert polygon_bound(w) == 0 < delta
    what = "the integer program for 12 random weights, enumerated"
    return Measured(what, off(-math.sqrt(delta), exact), off(-(delta**2), exact), 1e-9)


@NOTE2.erratum(
    "(20)",
    r"$\sum_j\mathrm E\big[\big(\sum_{x'\in\Theta}\mathbf 1(X_j=x'_j)\big)X\big]$",
    r"$\mathrm E\big[\sum_{x'\in\Theta}\prod_j\mathbf 1(X_j=x'_j) X\big]$",
    "The functions $g_j$ of (21), (22) therefore do not add up to $f$.",
)
def product_of_indicators():
    states = enumerate_states(5).astype(float)
    p, w = ising_weights(states, 0.7), field(5)
    inside = states[states @ w >= 0]
    exact = enumerated_response(w, lf.stimuli.Ising((5,), coupling=0.7))
    equal = states[:, None, :] == inside[None, :, :]
    printed, right = (
        (p * equal.sum(axis=(1, 2))) @ states,
        (p * equal.all(axis=2).sum(axis=1)) @ states,
    )
    return Measured("both sides for 5 spins, enumerated", off(printed, exact), off(right, exact))
