"""Equations of the sources that are right as printed."""

import math

import numpy as np
import scipy.special

import localfields as lf
from localfields.stimuli._ring import enumerate_states, ising_weights
from localfields.theory import Amplifier
from localfields.theory.responses.hypercube import enumerated_response
from localfields.theory.responses.linear import response_jacobian

from .common import (
    C1,
    GAUSSIAN,
    LONG,
    P0,
    P1,
    ROOT,
    SIGMA0,
    SIGMA1,
    STATES,
    STRONG,
    descent,
    erf,
    field,
    gaussian_loss,
    neuron,
    root,
)
from .gates import Gated
from .note1 import GAIN, NOTE1, bias_speed, printed_42
from .note2 import NOTE2
from .note3 import NOTE3, chances
from .note4 import NOTE4
from .paper import PAPER, STUDENT, student_mean
from .row import Measured, integral, normal_mean, off, slopes


@PAPER.confirm("(3)")
def unit_variance():
    laws = [lf.marginals.ErfNormal(gain=g) for g in (0.3, 1.0, 3.0)]
    result = [
        normal_mean(lambda z, law=law: (math.erf(law.gain * z) / float(law.deviation())) ** 2)
        for law in laws
    ]
    return Measured("variance at $g=0.3,1,3$ by quadrature", None, off(result, np.ones(3)), 1e-10)


@PAPER.confirm(r"(5), (6), at $\sigma=1$")
def effective_flow():
    w = field()
    exact = -slopes(gaussian_loss, w)
    phi = Amplifier(LONG.marginal())(SIGMA1 @ w / root(w, SIGMA1))
    error = max(
        off(0.5 * phi - 0.5 * (SIGMA0 + SIGMA1) @ w, exact),
        off(neuron(w, theory=lf.theory.EffectiveFlow()), exact),
    )
    # A1 on spins, where it is exact too: E[X | X_i] = X_i σ_i.
    given = (P1 * (STATES[:, 2] > 0)) @ STATES / (P1 @ (STATES[:, 2] > 0))
    return Measured(
        "flow on Gaussian data by differences, where they are exact; A1 on 9 spins",
        None,
        max(error, off(given, C1[2])),
        1e-8,
    )


@PAPER.confirm(r"C.3, $\varphi'''(a)$")
def third_derivative_in_full():
    law, worst = lf.marginals.Uniform(), 0.0
    x, p = law.nodes()
    for a in (0.2, 0.5, 0.8):
        inner = 12 * a**6 + (9 * x**2 - 21) * a**4 + (x**4 - 8 * x**2 + 6) * a**2 - x**2 + 3
        bell = np.exp(-(x**2) * a**2 / (2 * (1 - a**2)))
        printed = ROOT / ((1 - a**2) ** 3.5 * (a**2 - 1) ** 2) * np.sum(p * x**2 * inner * bell)
        second = lambda a: float(Amplifier(law).derivative(a, 2))  # noqa: E731
        exact = float(slopes(second, a, 1e-3))
        worst = max(worst, off(printed, exact), off(Amplifier(law).derivative(a, 3), exact))
    return Measured(
        "by differences of the second derivative at $a=0.2,0.5,0.8$, uniform law", None, worst, 1e-7
    )


@PAPER.confirm("§4.3, $p_R$")
def radius():
    total = integral(
        lambda r: 4 * math.exp(2 * r + 4) / (math.exp(2 * r) + math.exp(4)) ** 2, 2, 40
    )
    return Measured("its integral, by quadrature", None, abs(total - 1), 1e-10)


@NOTE1.confirm("(7)–(14)")
def conditioned():
    w = field()
    s = root(w, SIGMA1)
    a = np.eye(8) - np.outer(SIGMA1 @ w, w) / s**2
    free = np.abs(a @ SIGMA1 @ w).max()  # covariance of AX with S
    first, second = (
        normal_mean(lambda z, n=n: (s * z) ** n, 0.0) * SIGMA1 @ w / s**2 for n in (1, 2)
    )
    errors = off(SIGMA1 @ w / (s * math.sqrt(2 * math.pi)), first), off(0.5 * SIGMA1 @ w, second)
    return Measured(
        "independence of $AX$ and $S$; (12) and (14) by quadrature",
        None,
        float(max(free, *errors)),
        1e-10,
    )


@NOTE1.confirm("(20)–(24)")
def one_neuron():
    w = field()
    exact = -slopes(lambda w: 0.5 * gaussian_loss(w), w)
    printed = -0.25 * (SIGMA0 + (1 - ROOT / root(w, SIGMA1)) * SIGMA1) @ w
    basis = lf.lattice.fourier_basis((8,))
    lambda0, lambda1 = (np.diag(basis.T @ sigma @ basis) for sigma in (SIGMA0, SIGMA1))
    u = basis.T @ w
    modes = -0.25 * (lambda0 + (1 - ROOT / math.sqrt(u @ (lambda1 * u))) * lambda1) * u  # (21)
    rest = [
        (wave.ratio + 1) * root(wave.field(0.4), SIGMA1) for wave in lf.theory.sinusoids(GAUSSIAN)
    ]  # (24)
    errors = (
        off(printed, exact),
        off(0.5 * neuron(w), exact),
        off(modes, basis.T @ exact),
        off(rest, [ROOT] * len(rest)),
    )
    return Measured(
        "flow of one ReLU neuron, by differences of the loss (quadrature)", None, max(errors), 1e-8
    )


@NOTE1.confirm(r"(39), (41)–(43), for $\sigma=\mathrm{erf}(x)$")
def unscaled_bias():
    w, worst = 0.4 * field(), 0.0
    network = lf.networks.Committee(1, "erf-unscaled", "trained")
    for b in (0.0, 0.7):
        exact = bias_speed(scipy.special.erf, w, b)
        library = (
            0.5
            * descent(lf.theory.ErfCommittee(), GAUSSIAN, network, weights=w[None], biases=[b])[
                "biases"
            ][0]
        )
        worst = max(worst, off(printed_42(w, b), exact), off(library, exact))
    return Measured("flow of the bias, by differences of the loss (quadrature)", None, worst, 1e-8)


@NOTE1.confirm("(62), (63), for the loss without a ½")
def limiting_loss_without():
    net = Gated.example()
    zero, one = (net.inputs.T @ (p[:, None] * net.inputs) for p in (P0, P1))
    mean = P1 @ net.inputs
    values = (
        0.5 - net.b @ np.linalg.solve(net.a, net.b),
        0.5 - 0.5 * mean @ np.linalg.solve(zero + one, mean),
    )
    exact = 2 * net.loss(net.integrated(4000.0))
    what = "loss after $4000\\tau$ by integration, summed over all states"
    return Measured(
        what, None, max(off(value, exact) for value in (*values, net.theory.limiting_loss)), 1e-9
    )


@NOTE1.confirm("(69)–(71)")
def conditional_mean():
    r, z = 0.7, 0.4
    exact = normal_mean(lambda x: math.erf(GAIN * (r * z + math.sqrt(1 - r * r) * x)))
    return Measured(
        "conditional mean at $g=3$, $r=0.7$, by quadrature",
        None,
        off(math.erf(GAIN * r / math.sqrt(1 + 2 * GAIN**2 * (1 - r * r)) * z), exact),
        1e-9,
    )


@NOTE2.confirm("(5)")
def response_is_a_gradient():
    w = field(9)
    exact = slopes(lambda w: P1 @ np.maximum(STATES @ w, 0), w)
    result = enumerated_response(w, STRONG)
    return Measured(
        r"$f$ as the gradient of $\mathrm E[\mathrm{ReLU}]$ by differences, 9 spins",
        None,
        off(result, exact),
        1e-9,
    )


@NOTE2.confirm("(6), for the loss without a ½")
def fourier_flow():
    w = field()
    basis = lf.lattice.fourier_basis((8,))
    lambda0, lambda1 = (
        np.diag(basis.T @ lf.lattice.matrix(s.covariance()) @ basis) for s in STUDENT.stimuli
    )
    u = basis.T @ w
    printed = (
        student_mean() / 2 / math.sqrt(u @ (lambda1 * u)) * lambda1 * u
        - 0.5 * (lambda0 + lambda1) * u
    )
    return Measured(
        "flow of the modes on Student's $t_5$, and the library's",
        None,
        off(printed, basis.T @ neuron(w, STUDENT)),
        1e-9,
    )


@NOTE2.confirm("(13), (16), (19)")
def indicators():
    states, w = enumerate_states(5).astype(float), field(5)
    inside = states[states @ w >= 0]
    smallest = abs(lf.theory.separation(w, 5) - np.abs(states @ w).min())
    counted = (states[:, None, :] == inside[None, :, :]).all(axis=2).sum(axis=1)
    factors = (
        (0.5 * np.sign(inside)[None] * (states[:, None, :] + inside[None])).prod(axis=2).sum(axis=1)
    )
    gate = states @ w >= 0
    return Measured("δ and the gate written as products, 5 spins, all states", None,
                    float(max(smallest, np.abs(counted - gate).max(), np.abs(factors - gate).max())))  # fmt: skip


@NOTE2.confirm("Jacobian orthogonal to $w$")
def jacobian():
    w, rng = field(), np.random.default_rng(1)
    half = rng.normal(size=(8, 8))
    covariance = half @ half.T
    f = lambda w: covariance @ w / math.sqrt(w @ covariance @ w) * ROOT / 2  # noqa: E731
    rows = np.stack([slopes(lambda w, i=i: f(w)[i], w) for i in range(8)])
    library = response_jacobian(ROOT / 2, covariance, w)
    error = max(off(library, rows), np.abs(rows @ w).max(), np.abs(w @ rows).max())
    return Measured("rows and columns by differences, Gaussian data", None, float(error), 1e-8)


@NOTE3.confirm("(9), (10)")
def reduction():
    states = enumerate_states(8).astype(float)
    strong, weak = (ising_weights(states, j) for j in (0.7, 0.3))
    _, seventh, ninth = chances(0.3 * field(), strong, weak, states)
    return Measured("(9) against (7), 8 spins, enumerated", None, abs(seventh - ninth))


@NOTE3.confirm("(19)–(24)")
def folded_loss():
    w, states = field(8), enumerate_states(8).astype(float)
    p, total, folded = [ising_weights(states, j) for j in (0.7, 0.3)], 0.0, 0.0
    for weights, label in zip(p, (1, -1), strict=True):
        out = erf(states @ w)
        total += weights @ (out - label) ** 2
        folded += 2 * (weights * (states @ w > 0)) @ (out**2 + 1)
    return Measured("the starting loss of erf, 8 spins, enumerated", None, off(folded, total))


@NOTE3.confirm("difference of means")
def means():
    w = field()
    exact = [normal_mean(lambda z, s=s: (s * z) ** 2) for s in (root(w, SIGMA1), root(w, SIGMA0))]
    task = [
        lf.lattice.spectrum(lf.stimuli.Gaussian((40,), xi=xi).covariance())[:21] for xi in (1, 3)
    ]
    assert (
        np.argmax(task[1] - task[0]) == 0 and np.argmin(task[1] - task[0]) == 8
    )  # the constant leads
    return Measured(
        "difference of second moments by quadrature",
        None,
        off(w @ (SIGMA1 - SIGMA0) @ w, exact[0] - exact[1]),
        1e-10,
    )


@NOTE4.confirm("(11), (13), (137), (141)")
def gated_moments():
    w = field()
    s, mass = root(w, SIGMA1), normal_mean(lambda z: 1.0, 0.0)
    first, second = (normal_mean(lambda z, n=n: (s * z) ** n, 0.0) for n in (1, 2))
    along = SIGMA1 @ w / s**2  # E[X | S] = S along
    errors = [
        off(SIGMA1 @ w / (s * math.sqrt(2 * math.pi)), first * along),
        off(0.5 * SIGMA1 @ w, second * along),
        off(ROOT * s, first / mass),
        off(ROOT * SIGMA1 @ w / s, first / mass * along),
    ]
    return Measured(
        "gated means and second moment of one neuron, by quadrature", None, max(errors), 1e-10
    )
