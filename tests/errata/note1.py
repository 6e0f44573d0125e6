"""Working note 1: ReLU and erf committees on Gaussian data, gated linear networks."""

import math

import numpy as np
import scipy.linalg
from theory.networks import test_committee as committees
from theory.networks import test_pairs as moments

import localfields as lf
from localfields.networks.gates import Bump

from .common import GAUSSIAN, ROOT, SIGMA0, SIGMA1, descent, erf, field, gaussian_loss, neuron, root
from .gates import Gated
from .row import Measured, Source, gated_product, normal_mean, off, products, slopes

NOTE1 = Source(
    "Working note 1 (committees and gates)",
    "Committees of ReLU and of erf neurons on Gaussian data, their biases, and gated linear networks. Its loss carries "
    "a ½, $L=\\tfrac12\\mathrm E(\\hat y-Y)^2$. The route (condition on the preactivations, go to Fourier space) is "
    "right, and so are the equations of one neuron, (20)–(24); what it calls a mess has a short closed form.",
)
PAIR = np.stack([field(), field(seed=1)])


@NOTE1.erratum(
    "(4), (5); note 4 (4), (5)",
    r"$\partial\hat y/\partial w_1=\partial \mathrm{ReLU}\langle w_1,x\rangle/\partial w_1$",
    r"$\tfrac1K$ of it",
    "A change of the unit of time.",
)
def chain_rule():
    exact = -slopes(lambda w: 0.5 * gaussian_loss(w), PAIR, 1e-3)
    right = (
        0.5
        * descent(lf.theory.GaussianCommittee(), GAUSSIAN, lf.networks.Committee(2), weights=PAIR)[
            "weights"
        ]
    )
    pair = list(PAIR)
    printed = np.stack([
        0.5 * SIGMA1 @ w / (root(w, SIGMA1) * math.sqrt(2 * math.pi))
        - 0.5 * sum(gated_product(w, v, sigma) for v in pair for sigma in (SIGMA0, SIGMA1)) / 2
        for w in pair
    ])  # fmt: skip
    what = "flow of two ReLU neurons, by differences of the loss (quadrature)"
    return Measured(what, off(printed, exact), off(right, exact), 1e-8)


@NOTE1.erratum(
    "(17), (18); note 4 (46)–(48)",
    r"two long brackets with $\tfrac1{\gamma\rho_{11}}$",
    r"$\mathrm E[\mathbf 1(S{>}0)\mathrm{ReLU}(T)X]=\tfrac1{2\pi}\sqrt{\rho_{kk}/\rho_{11}}\sqrt{1-\gamma^2} "
    r"\Sigma w_1+\big(\tfrac14+\tfrac{\arcsin\gamma}{2\pi}\big)\Sigma w_k$",
    "By Stein's lemma. The printed form does not scale with the fields: twice the fields do not give twice the value.",
)
def long_bracket():
    exact = gated_product(*PAIR, SIGMA1)
    printed, right = moments.printed_47(*PAIR, SIGMA1), committees.gated(*PAIR, SIGMA1)
    g = products(*PAIR, SIGMA1)
    what = rf"the product at $\gamma={g[2] / math.sqrt(g[0] * g[1]):.2f}$, quadrature over the quadrant"
    return Measured(what, off(printed, exact), off(right, exact), 1e-10)


def mode_flow(u0, sin=0.0, frequency=1):
    """Eq. (21), which is right: relative speed of a field with amplitudes u0 (cos) and sin at
    one frequency.
    """
    basis = lf.lattice.fourier_basis((40,))
    w = basis[:, 2 * frequency - 1] * u0 + basis[:, 2 * frequency] * sin
    return neuron(w, MODES) / np.linalg.norm(w)


MODES = lf.Discrimination(*(lf.stimuli.Gaussian((40,), xi=xi) for xi in (1, 2)))
LAMBDA0, LAMBDA1 = (
    float(lf.lattice.spectrum(stimulus.covariance())[1]) for stimulus in MODES.stimuli
)


@NOTE1.erratum(
    "(25)",
    r"$u_k^2=\sqrt{2/\pi} \tfrac1{\lambda_0+\lambda_1}$",
    r"$u_k^2=\tfrac2\pi \tfrac{\lambda_1}{(\lambda_0+\lambda_1)^2}$",
    r"$\lVert u\rVert_{\Lambda_1}^2$ was put where (24) has $\lVert u\rVert_{\Lambda_1}$.",
)
def amplitude():
    printed = mode_flow((ROOT / (LAMBDA0 + LAMBDA1)) ** 0.5)
    wave = next(wave for wave in lf.theory.sinusoids(MODES) if wave.frequency == (1,))
    right = mode_flow(wave.norm)
    assert abs(wave.norm - ROOT * math.sqrt(LAMBDA1) / (LAMBDA0 + LAMBDA1)) < 1e-12
    what = "relative speed of what should rest, frequency 1, ξ = (1, 2), $N=40$"
    return Measured(
        what, float(np.linalg.norm(printed)), float(np.linalg.norm(right)), 1e-10, unit="absolute"
    )


@NOTE1.erratum(
    "(26)–(31)",
    r"$\sqrt{2/\pi}=(1+r)\sum u_k^2\lambda_{1k}$",
    r"$\sqrt{2/\pi}=(1+r)\big(\sum u_k^2\lambda_{1k}\big)^{1/2}$",
)
def amplitudes():
    r = LAMBDA0 / LAMBDA1
    sizes = math.sqrt(ROOT / (1 + r) / LAMBDA1), ROOT / (1 + r) / math.sqrt(LAMBDA1)
    errors = [float(np.linalg.norm(mode_flow(0.6 * size, 0.8 * size))) for size in sizes]
    return Measured(
        "relative speed of cos and sin together, as above", *errors, 1e-10, unit="absolute"
    )


@NOTE1.erratum(
    "(33)–(35)",
    "real and imaginary parts of the columns are unit vectors",
    r"they need $\sqrt2$ ($k\ne0,n/2$)",
)
def unit_vectors():
    n, x = 40, np.arange(40)
    printed = np.stack(
        [np.cos(2 * np.pi * 3 * x / n), np.sin(2 * np.pi * 3 * x / n)], axis=1
    ) / math.sqrt(n)
    right = lf.lattice.fourier_basis((n,))[:, 5:7]
    same = np.abs(right / math.sqrt(2) - printed).max()
    errors = [
        float(np.abs(np.linalg.norm(columns, axis=0) - 1).max()) for columns in (printed, right)
    ]
    return Measured(
        "length of the columns of frequency 3", errors[0], max(errors[1], same), unit="absolute"
    )


def bias_speed(activation, w, b):
    """−∂L/∂b of one neuron, labels 0 and 1, by quadrature over the preactivation."""
    total = 0.0
    for sigma, label in ((SIGMA0, 0.0), (SIGMA1, 1.0)):
        s = root(w, sigma)
        loss = lambda b: 0.25 * normal_mean(lambda z: (float(activation(s * z + b)) - label) ** 2)  # noqa: B023, E731
        total -= float(slopes(loss, b, 1e-3))
    return total


def printed_42(w, b):
    """Eq. (42)."""
    one, zero = (2 * root(w, sigma) ** 2 for sigma in (SIGMA1, SIGMA0))
    drop = lambda q: q / (q + 1) - 1  # noqa: E731
    part = lambda q: math.exp(drop(q) * b * b) * math.erf(drop(q) / math.sqrt(2 + drop(q)) * b)  # noqa: E731
    inner = (
        math.exp(b * b / one * (1 / (one + 1) - 1))
        + part(one)
        + math.sqrt((one + 1) / (zero + 1)) * part(zero)
    )
    return inner / math.sqrt(math.pi * (one + 1))


@NOTE1.erratum(
    "(37)–(43)",
    r"for $\sigma(x)=\mathrm{erf}(x/\sqrt2)$",
    r"for $\sigma(x)=\mathrm{erf}(x)$, labels 0 and 1",
    "As formulas of erf(x) they are right (below).",
)
def unscaled():
    w, b = 0.4 * field(), 0.7
    exact = bias_speed(erf, w, b)
    network = lf.networks.Committee(1, "erf", "trained")
    right = (
        0.5
        * descent(lf.theory.ErfCommittee(), GAUSSIAN, network, weights=w[None], biases=[b])[
            "biases"
        ][0]
    )
    what = r"flow of the bias of an $\mathrm{erf}(x/\sqrt2)$ neuron, by differences of the loss (quadrature)"
    return Measured(what, off(printed_42(w, b), exact), off(right, exact), 1e-8)


@NOTE1.erratum(
    "bias flow of $K$ neurons",
    r"$\sqrt{2/\pi}(\dots)$; no $\sqrt{2/\pi}$ before the term $k=1$; numerator "
    r"$b_k-\tfrac{\sigma_{1k}}{\sigma_{11}}\tfrac{b_1}{1+\sigma_{11}}$",
    r"$\tfrac12\sqrt{2/\pi}(\dots)$; with it; $b_k-\tfrac{\sigma_{1k}b_1}{1+\sigma_{11}}$ (the denominator is right)",
)
def many_biases():
    network, rng = committees.committee("erf", 3), np.random.default_rng(0)
    params = committees.params_of(network, rng)
    w, b = (np.asarray(params[name]) for name in ("weights", "biases"))
    exact = 0.0
    for stimulus, label in zip(committees.GAUSSIANS[:2], (-1, 1), strict=True):
        q = w @ committees.covariance(stimulus) @ w.T
        pull = label * moments.by_quadrature(
            lambda s, t: moments.erf_first(s), (q[0, 0], q[1, 1], q[0, 1]), b[0], b[1]
        )
        back = sum(
            moments.by_quadrature(
                lambda s, t: moments.erf_first(s) * erf(t), (q[0, 0], q[k, k], q[0, k]), b[0], b[k]
            )
            for k in range(3)
        )
        exact += 0.5 * (pull - back / 3) / 3
    right = (
        0.5
        * descent(lf.theory.ErfCommittee(), committees.TASKS["signs"], network, **params)["biases"][
            0
        ]
    )
    assert abs(committees.many_neurons(w, b, right=True) - right) < 1e-13
    printed = committees.many_neurons(w, b, right=False)
    what = "bias flow of the first of three neurons, labels ±1, by Gauss–Hermite quadrature"
    return Measured(what, off(printed, exact), off(right, exact), 1e-9)


@NOTE1.erratum(
    "(48), (51); note 4 (82), (85)",
    r"$\tau\dot w_1=\tfrac1K\big[\Sigma^{yx}-\sum_k\Sigma^{xx}w_k\big]$",
    r"$\tfrac1K\big[\Sigma^{yx}-\tfrac1K\sum_k\Sigma^{xx}w_k\big]$",
)
def gated_flow():
    net = Gated.example()
    exact = -slopes(net.loss, net.start)
    printed = (net.b - net.a @ net.start) / net.count
    what = f"flow of {net.count} gated neurons, by differences of the loss"
    return Measured(what, off(printed, exact), off(net.flow(net.start), exact), 1e-9)


@NOTE1.erratum(
    "(54)–(56), (58); note 4 (88)–(90), (102)–(107)",
    r"$w(t)=A^{-1}Pe^{-t\Lambda/K\tau+C}\mathbf 1+A^{-1}b$; $w(\infty)$ with $t$ in it",
    r"$w(t)=KA^{-1}b+e^{-At/K^2\tau}\big(w_0-KA^{-1}b\big)$",
    r"The missing $1/K$ of (48); the end has no $t$; and $e^C>0$ fits a start only with $P$ of signs chosen "
    "for it.",
)
def gated_solution():
    net, time = Gated.example(), 3.0
    exact = net.integrated(time)
    # As printed, with eigenvectors of such signs that a C fits the start: e^C 1 = ±Pᵀ(Aw₀ − b).
    faded = scipy.linalg.expm(-net.a * time / net.count) @ (net.a @ net.start - net.b)
    printed = np.linalg.solve(net.a, faded + net.b)
    what = f"fields at $t={time:g}\\tau$ by integration of the gradient, signs of $P$ and $C$ fitted to the start"
    return Measured(what, off(printed, exact), off(net.solution(time), exact), 1e-8)


@NOTE1.erratum(
    "§5.1",
    "the race is won by the gates with the smallest eigenvalues",
    r"speed is $\lambda/K^2\tau$: by the largest",
)
def race():
    net, time = Gated.example(), 1.0
    vectors = np.linalg.eigh(net.a)[1]
    far = [vectors.T @ (w - net.end) for w in (net.start, net.integrated(time))]
    speed = -np.log(far[1] / far[0]) / time
    result = 0.5 * net.theory.rates[::-1]  # eigenvalues ascend
    what = "rates at which modes approach their end, by integration; with the eigenvalues in reverse, and as they are"
    return Measured(what, off(result[::-1], speed), off(result, speed), 1e-8)


@NOTE1.erratum(
    "(62), (63); note 4 (96), (97)",
    r"$\mathcal L_\infty=\tfrac12-b^\top A^{-1}b$ for the loss with ½",
    r"for the loss without it; with it, half of that",
)
def limiting_loss():
    net = Gated.example()
    printed = 0.5 - net.b @ np.linalg.solve(net.a, net.b)
    run = net.integrated(4000.0)  # at the end
    exact = net.loss(run)
    what = "loss of eq. (3) after $4000\\tau$ by integration, summed over all states"
    return Measured(what, off(printed, exact), off(0.5 * net.theory.limiting_loss, exact), 1e-9)


@NOTE1.erratum(
    "(72), (73)",
    r"$\tfrac2{\sqrt\pi}\arctan(\dots)$",
    r"$\tfrac1\pi\arctan(\dots)$",
    "The shape of Figure 4 is right.",
)
def gate_integral():
    exact = [normal_mean(lambda z: math.erf(c * z), 0.0) for c in SLOPES]  # noqa: B023
    arctan = np.arctan(math.sqrt(2) * SLOPES)
    return Measured(
        "the integral (71), by quadrature",
        off(2 / math.sqrt(math.pi) * arctan, exact),
        off(arctan / math.pi, exact),
    )


GAIN, LATENT = 3.0, np.exp(-(np.arange(1, 7) ** 2) / 9)  # of sites 1 … 6 from the gate, ξ = 3
SLOPES = GAIN * LATENT / np.sqrt(1 + 2 * GAIN**2 * (1 - LATENT**2))


@NOTE1.erratum(
    "(74)",
    r"$\tfrac1{\sqrt\pi \mathcal Z}\arctan(\dots)$",
    r"$\tfrac1{2\pi \mathcal Z}\arctan(\dots)=\tfrac1{2\pi \mathcal Z}\arcsin\big(r\sqrt{2g^2/(1+2g^2)}\big)$",
)
def gate_covariance():
    law = lf.marginals.ErfNormal(gain=GAIN)
    exact = [
        0.5 * normal_mean(lambda z, c=c: math.erf(c * z), 0.0) / float(law.deviation())
        for c in SLOPES
    ]
    arctan = np.arctan(LATENT / np.sqrt(1 / (2 * GAIN**2) + 1 - LATENT**2)) / float(law.deviation())
    printed = arctan / math.sqrt(math.pi)
    task = lf.Discrimination(*(lf.stimuli.NLGP((40,), xi=xi, gain=GAIN) for xi in (1, 3)))
    right = lf.theory.gated_solution(task, Bump()).first[1:7]
    return Measured(
        "covariance of gate and input, $g=3$, $\\xi=3$, by quadrature",
        off(printed, exact),
        off(right, exact),
        1e-10,
    )
