"""Working note 4: the longer first version of note 1."""

import math

import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.stats
from theory.networks import test_committee as committees
from theory.networks import test_pairs as moments

import localfields as lf

from .common import (
    C0,
    C1,
    GAUSSIAN,
    P0,
    P1,
    ROOT,
    SIGMA0,
    SIGMA1,
    STATES,
    descent,
    field,
    half_mean,
    ising_loss,
    neuron,
    root,
)
from .gates import Gated
from .row import Measured, Source, gated_product, normal_mean, off, products, quadrant, slopes

NOTE4 = Source(
    "Working note 4 (note 1 in a longer first version)",
    "Committees and gates once more, with the derivations; the loss carries a ½. The equations of one neuron that "
    "note 1 keeps are right. The two-neuron product starts well, (16) and (17), and then loses its way in the algebra; "
    "its value in closed form is in the table of note 1.",
)
PAIR = field(), field(seed=1)
Q = products(*PAIR, SIGMA1)
MOMENTS = [
    quadrant(*Q, *powers) for powers in ((2, 0), (1, 1), (0, 2))
]  # E[S²], E[ST], E[T²] over S, T > 0


def with_cosine(cosine):
    """Two fields whose preactivations have this correlation under class 1."""
    w, v = PAIR[0] / root(PAIR[0], SIGMA1), PAIR[1]
    v = v - (w @ SIGMA1 @ v) * w
    return w, 1.3 * (cosine * w + math.sqrt(1 - cosine**2) * v / root(v, SIGMA1))


@NOTE4.erratum(
    "(14), (20)",
    r"$C \mathrm E_{S,T>0}[S^2,ST]^\top \mathrm P(S,T>0)$",
    r"$C \mathrm E[\mathbf 1(S,T>0)(ST,T^2)^\top]$",
    r"The moments (21)–(30) are those of the indicator already: $\mathrm P$ enters twice; and $T (S,T)=(ST,T^2)$.",
)
def indicator_once():
    draws = np.random.default_rng(0).multivariate_normal(
        np.zeros(8), SIGMA1, 200_000, method="cholesky"
    )
    s, t = draws @ PAIR[0], draws @ PAIR[1]
    products = ((s > 0) * np.maximum(t, 0))[:, None] * draws
    mean, error = products.mean(axis=0), products.std(axis=0) / math.sqrt(len(draws))
    seen = SIGMA1 @ np.stack(PAIR).T
    weights = np.linalg.solve(np.stack(PAIR) @ seen, np.eye(2))
    both = quadrant(*Q, 0, 0)
    values = [seen @ weights @ moments for moments in (MOMENTS[1:], MOMENTS[:2])]
    right, *printed = (
        float(np.abs((value - mean) / error).max())
        for value in (values[0], both * values[0], values[1], both * values[1])
    )
    what = "the product by 200 000 draws, largest deviation of an entry; of one slip alone, or both, the least"
    return Measured(what, min(printed), right, 5.0, "σ")


@NOTE4.erratum(
    "(18)", r"$C=\Sigma U^\top(U^\top\Sigma U)^{-1}$", r"$\Sigma U^\top(U\Sigma U^\top)^{-1}$"
)
def dimensions():
    rng = np.random.default_rng(0)
    u, half = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    sigma = half @ half.T  # two sites, so that the printed product exists
    cross = sigma @ u.T
    left = [
        cross - cross @ np.linalg.inv(middle) @ u @ cross
        for middle in (u.T @ sigma @ u, u @ sigma @ u.T)
    ]
    what = r"covariance of $AX$ with $(S,T)$, to be 0, on two sites; on more the printed product does not exist"
    return Measured(what, *(float(np.linalg.norm(x) / np.linalg.norm(cross)) for x in left), 1e-10)


@NOTE4.erratum(
    "(22) ff.",
    r"$\rho_{11}s^2-2\rho_{1k}st+\rho_{kk}t^2$",
    r"$\rho_{kk}s^2-2\rho_{1k}st+\rho_{11}t^2$",
)
def density():
    q11, qkk, q1k = Q
    det = q11 * qkk - q1k**2
    points = np.array([[0.5, 1.0], [2.0, 0.3], [1.0, 3.0]])
    exact = scipy.stats.multivariate_normal([0, 0], [[q11, q1k], [q1k, qkk]]).pdf(points)
    s, t = points.T
    forms = [
        np.exp(-(a * s * s - 2 * q1k * s * t + b * t * t) / (2 * det))
        for a, b in ((q11, qkk), (qkk, q11))
    ]
    printed, right = (form / (2 * math.pi * math.sqrt(det)) for form in forms)
    return Measured("density of $(S,T)$ at three points", off(printed, exact), off(right, exact))


@NOTE4.erratum(
    "(25), (30)",
    r"$\tfrac{\rho_{kk}}{2\pi}(\arccos(-\gamma)+\gamma\sqrt{1-\gamma^2})$; "
    r"$\tfrac{\rho_{1k}}{2\pi}(\arcsin\gamma+\gamma\sqrt{1-\gamma^2})$",
    r"$\rho_{11}$ before the first; $\tfrac{\sqrt{\rho_{11}\rho_{kk}}}{2\pi}\big(\sqrt{1-\gamma^2}+\gamma(\tfrac\pi2+"
    r"\arcsin\gamma)\big)$",
)
def quadrant_moments():
    from localfields.theory.networks.pairs import relu_pair

    q11, qkk, q1k = Q
    g = q1k / math.sqrt(q11 * qkk)
    turn, edge = math.acos(-g), g * math.sqrt(1 - g * g)
    printed = [qkk / (2 * math.pi) * (turn + edge), q1k / (2 * math.pi) * (math.asin(g) + edge)]
    right = [q11 / (2 * math.pi) * (turn + edge), float(relu_pair(*map(jnp.asarray, Q)))]
    least = min(off(*pair) for pair in zip(printed, MOMENTS, strict=False))
    return Measured(
        "both moments by quadrature over the quadrant, the smaller error",
        least,
        off(right, MOMENTS[:2]),
        1e-10,
    )


def printed_44(w, v, sigma, last=False):
    """Eq. (44), or (45)."""
    p11, pkk, p1k = products(w, v, sigma)
    size = math.sqrt(p11 * pkk)
    g = p1k / size
    asin = math.asin(g)
    one, other = (
        pkk**2 * math.acos(-g) - p1k**2 * asin,
        -p1k * pkk * math.acos(g) + p1k * p11 * asin,
    )
    scale = 1 / (g * size**2) if last else p1k / size**3
    first = (one * w + other * v) / ((1 - g * g) * size**2)
    second = scale / math.sqrt(1 - g * g) * ((pkk - p1k) * w + (p11 - p1k) * v)
    return sigma @ (first + second) / (2 * math.pi)


@NOTE4.erratum(
    "(43) → (44) → (45)",
    r"$\arccos(-\gamma)\to\arccos\gamma$; $\gamma/\rho_{11}\rho_{kk}\to1/\gamma\rho_{11}\rho_{kk}$",
    "the closed form of note 1 (17)",
    "Three different values stand as equal, and none is the product.",
)
def chain():
    exact, w, v = gated_product(*PAIR, SIGMA1), *PAIR
    result = [
        moments.printed_43(w, v, SIGMA1),
        printed_44(w, v, SIGMA1),
        printed_44(w, v, SIGMA1, last=True),
    ]
    errors = [off(value, exact) for value in result]
    assert off(result[0], result[1]) > 0.05 and off(result[1], result[2]) > 0.05
    percent = ", ".join(f"{100 * x:.0f} %" for x in errors)
    what = f"the product by quadrature: (43), (44), (45) are off by {percent}; the least"
    return Measured(what, min(errors), off(committees.gated(w, v, SIGMA1), exact), 1e-10)


@NOTE4.erratum(
    "(49), (52)",
    r"$\tfrac{\rho_{kk}}{4\rho_{11}}\Sigma_1w_1$; no competition; class 0 omitted",
    r"$\tfrac1{2\pi}\sqrt{\rho_{kk}/\rho_{11}} \Sigma w_1+\tfrac14\Sigma w_k$ for both classes",
    "Orthogonal neurons do compete.",
)
def orthogonal():
    (w, v), zero, one = with_cosine(0.0), SIGMA0, SIGMA1
    exact = 0.5 * one @ w / (root(w, one) * math.sqrt(2 * math.pi))
    exact = exact - 0.25 * sum(
        0.5 * sigma @ w + gated_product(w, v, sigma) for sigma in (zero, one)
    )
    ratio = (v @ one @ v) / (2 * (w @ one @ w))
    printed = 0.5 * (1 / math.sqrt(2 * math.pi * (w @ one @ w)) - 0.5 * (1 + ratio)) * one @ w
    both = np.stack([w, v])
    flow = descent(lf.theory.GaussianCommittee(), GAUSSIAN, lf.networks.Committee(2), weights=both)
    first = off(moments.printed_49(w, v, one), gated_product(w, v, one))
    what = f"the product, {100 * first:.0f} %, and the flow of the first of two neurons, without its $1/K$; quadrature"
    return Measured(
        what, off(printed, exact), off(flow["weights"][0], exact), 1e-9
    )  # K/2 of the library's = 1


@NOTE4.erratum(
    "(54)",
    r"diverges as $\varepsilon^{-2}$ where the neurons become alike",
    r"finite: $\to\tfrac12\Sigma w_k$",
    r"$\rho_{1k}=\sqrt{\rho_{11}\rho_{kk}}+\varepsilon^2$ is also more than Cauchy and Schwarz allow.",
)
def alike():
    (w, v), sigma = with_cosine(1 - 1e-4), SIGMA1
    p11, pkk, p1k = products(w, v, sigma)
    small = math.sqrt(p11 * pkk) - p1k  # ε²
    quarter = math.pi - math.pi / 2
    printed = pkk**2 / (2 * math.pi * small) * quarter * sigma @ (w - pkk**2 * v)
    printed = printed + sigma @ ((pkk - p1k) * w + (p11 - p1k) * v) / (
        2 * math.pi * math.sqrt(small)
    )
    exact = gated_product(w, v, sigma)
    assert off(exact, 0.5 * sigma @ v) < 0.01
    return Measured(
        r"the product at $\gamma=1-10^{-4}$, by quadrature",
        off(printed, exact),
        off(committees.gated(w, v, sigma), exact),
        1e-8,
    )


@NOTE4.erratum(
    "(63), (76)",
    r"moments of $S'$ given $T'$ without the cut at $S'>0$",
    "those of the truncated normal: at $\\rho=0.6$, $T'=0.5$ second moment 0.868 (printed 0.730), mean 0.760 (0.570)",
)
def truncated():
    rho, t = 0.6, 0.5
    mean, sd = rho * t, math.sqrt(1 - rho**2)
    mass, *exact = (normal_mean(lambda z, n=n: (mean + sd * z) ** n, -mean / sd) for n in (0, 1, 2))
    exact = np.array(exact) / mass
    printed = [
        ROOT * (1 - rho**2) * math.exp(-((rho * t) ** 2) / (2 * sd))
        + mean * math.erf(mean / (math.sqrt(2) * sd)),
        mean**2 + sd**2,
    ]
    hazard = sd * scipy.stats.norm.pdf(mean / sd) / scipy.stats.norm.cdf(mean / sd)
    right = [mean + hazard, mean**2 + sd**2 + mean * hazard]
    assert np.round([*right, *printed], 3).tolist() == [0.760, 0.868, 0.570, 0.730]
    least = min(off(*pair) for pair in zip(printed, exact, strict=True))
    return Measured(
        "both moments by quadrature, the smaller error", least, off(right, exact), 1e-10
    )


@NOTE4.erratum(
    "(70), (75)",
    r"$1-\tfrac{\rho^2}2$; a fraction with $3\rho^2+1$",
    r"$\tfrac12$; $\tfrac{\rho^2}\pi\big(\arcsin\rho+\rho\sqrt{1-\rho^2}\big)$",
)
def terms():
    rho = 0.6
    sd = math.sqrt(1 - rho**2)
    inner = lambda t: math.erf(rho * t / (math.sqrt(2) * sd))  # noqa: E731
    exact = [
        normal_mean(lambda t: 1 + (t * t - 1) * rho**2, 0.0),
        normal_mean(lambda t: (rho * t) ** 2 * inner(t), 0.0),
    ]
    bracket = 2**1.5 * math.atan(sd / rho) - 2 * math.sqrt(2) * rho * sd / (3 * rho**2 + 1)
    printed = [1 - rho**2 / 2, rho**2 / (2 * math.sqrt(2 * math.pi)) * bracket]
    right = [0.5, rho**2 / math.pi * (math.asin(rho) + rho * sd)]
    least = min(off(*pair) for pair in zip(printed, exact, strict=True))
    return Measured(
        "both terms at $\\rho=0.6$ by quadrature, the smaller error",
        least,
        off(right, exact),
        1e-10,
    )


@NOTE4.erratum(
    "(72)",
    r"$\tfrac{1-\rho^2}2\big(1-\tfrac2\pi\arctan\tfrac{\sqrt{1-\rho^2}}\rho\big)$",
    r"$\tfrac{1-\rho^2}\pi\arcsin\rho$",
    r"The same for $\rho>0$.",
)
def branch():
    rho = -0.6
    sd = math.sqrt(1 - rho**2)
    exact = sd**2 * normal_mean(lambda t: math.erf(rho * t / (math.sqrt(2) * sd)), 0.0)
    printed = 0.5 * sd**2 * (1 - 2 / math.pi * math.atan(sd / rho))
    return Measured(
        "the term at $\\rho=-0.6$ by quadrature",
        off(printed, exact),
        off(sd**2 / math.pi * math.asin(rho), exact),
        1e-10,
    )


@NOTE4.erratum(
    "(110)–(113)",
    r"$w_1=\tfrac12A^{-1}\big(Pe^{-t\Lambda/K\tau+C}\mathbf 1+b\big)$",
    r"$w_{1,2}=\tfrac12\big(s\pm(w_1-w_2)(0)\big)$, $s=KA^{-1}b+e^{-2At/K^2\tau}(s_0-KA^{-1}b)$",
    "The sum relaxes twice as fast, and the difference, which (109) rightly calls constant, is to be kept.",
)
def redundant():
    net, time = Gated.example(redundant=True), 3.0
    exact = net.integrated(time)
    a, b, first, second = net.a[:9, :9], net.b[:9], net.start[:9], net.start[9:]
    faded = scipy.linalg.expm(-a * time / net.count) @ (
        2 * a @ first - b
    )  # signs of P and C fitted to the start
    form = 0.5 * np.linalg.solve(a, faded + b)
    printed = np.concatenate([form, form - (first - second)])

    def own(_, both):  # (108) and (109) as they stand
        return np.tile(b - a @ (both[:9] + both[9:]), 2) / net.count

    run = scipy.integrate.solve_ivp(
        own, (0, time), net.start, rtol=1e-12, atol=1e-13, method="DOP853"
    )
    errors = off(printed, exact), off(printed, run.y[:, -1])
    what = "two neurons with one gate at $t=3\\tau$, by integration of the gradient and of (108), (109); "
    what += "signs of $P$ and $C$ fitted to the start; the smaller error"
    return Measured(what, min(errors), off(net.solution(time), exact), 1e-8)


@NOTE4.erratum(
    "(117), (130)–(133)",
    "(I) and (II) interchanged; bracket of $\\Sigma_1$ upside down; a term of $AX$ in the quadratic part",
    r"$4\tau\dot w=2f-(\Sigma_0+\Sigma_1)w$, exactly, for every sign-symmetric law",
)
def exact_flow():
    w = 0.3 * field(9)
    gate = STATES @ w > 0
    printed = np.zeros(9)
    for p, c, constant in ((P1, C1, -1.0), (P0, C0, 0.0)):
        given = p * gate / (p @ gate)
        turned = STATES - np.outer(STATES @ w, c @ w / (w @ c @ w))  # AX
        printed -= 0.5 * (given * (STATES @ w - 1)) @ turned
        printed -= (given @ (STATES @ w) / (w @ c @ w) + constant) * c @ w
    exact = -4 * slopes(lambda w: 0.5 * ising_loss(w), w)
    right = 2 * neuron(
        w,
        lf.Discrimination(*(lf.stimuli.Ising((9,), coupling=j) for j in (0.3, 0.7))),
        lf.theory.ExactIsing(),
    )
    what = "$4\\tau\\dot w$ on 9 spins, all states summed, by differences of the loss"
    return Measured(what, off(printed, exact), off(right, exact), 1e-9)


@NOTE4.erratum("(136)", "the basis $P$ is cosines only", "cosines and sines")
def cosines():
    x = np.arange(40)
    printed = np.cos(2 * np.pi * np.outer(x, x) / 40) / math.sqrt(40)
    ranks = [
        int(np.linalg.matrix_rank(basis)) for basis in (printed, lf.lattice.fourier_basis((40,)))
    ]
    what = f"rank, of 40: {ranks[0]} and {ranks[1]}; missing directions"
    return Measured(what, float(40 - ranks[0]), float(40 - ranks[1]), 0.5, "absolute")


@NOTE4.erratum(
    "(138)",
    r"$-\big[(\tfrac1{s_1}-1)\Lambda_1+\tfrac1{s_0}\Lambda_0\big]u$",
    r"$-\big[(1-\sqrt{2/\pi} \tfrac1{s_1})\Lambda_1+\Lambda_0\big]u$",
    "Note 1 (21) has it right.",
)
def fourier_flow():
    w = field()
    s0, s1 = root(w, SIGMA0), root(w, SIGMA1)
    exact = -4 * slopes(lambda w: 0.5 * one_neuron_loss(w), w)
    printed = -((1 / s1 - 1) * SIGMA1 + SIGMA0 / s0) @ w
    return Measured(
        "$4\\tau\\dot w$ on Gaussian data, by differences of the loss",
        off(printed, exact),
        off(2 * neuron(w), exact),
        1e-9,
    )


def one_neuron_loss(w):
    """E(Y − ReLU⟨w, X⟩)² on the Gaussian classes."""
    half = normal_mean(lambda z: z * z, 0.0)
    return 0.5 - root(w, SIGMA1) * half_mean() + 0.5 * half * w @ (SIGMA0 + SIGMA1) @ w


@NOTE4.erratum(
    "(140), (142)",
    r"$\mathrm E[XX^\top\mid S>0]=A\Sigma A^\top$",
    r"$\Sigma$",
    "The conditional covariance is not the second moment.",
)
def second_moment():
    w = field()
    draws = np.random.default_rng(0).multivariate_normal(
        np.zeros(8), SIGMA1, 100_000, method="cholesky"
    )
    draws = draws[draws @ w > 0]
    products = draws[:, :, None] * draws[:, None, :]
    mean, error = products.mean(axis=0), products.std(axis=0) / math.sqrt(len(draws))
    a = np.eye(8) - np.outer(SIGMA1 @ w, w) / (w @ SIGMA1 @ w)
    sigmas = [float(np.abs((value - mean) / error).max()) for value in (a @ SIGMA1 @ a.T, SIGMA1)]
    return Measured("largest deviation of an entry, 100 000 Gaussian draws", *sigmas, 5.0, "σ")


@NOTE4.erratum(
    "(145)–(147)",
    r"$\tau\dot w=-2\sqrt{2/\pi} \Sigma_1w/s_1$, which shrinks to 0",
    r"$-\tfrac14\big(\Sigma_0+(1-\sqrt{2/\pi}/s_1)\Sigma_1\big)w$, with a steady state",
    "Note 1 (20).",
)
def shrinking():
    w = field()
    exact = -slopes(lambda w: 0.5 * one_neuron_loss(w), w)
    printed = -2 * ROOT * SIGMA1 @ w / root(w, SIGMA1)
    assert lf.theory.winning_mode(GAUSSIAN).norm > 0.1  # it does not shrink to nothing
    return Measured(
        "flow on Gaussian data, by differences of the loss",
        off(printed, exact),
        off(0.5 * neuron(w), exact),
        1e-9,
    )
