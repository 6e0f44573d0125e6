"""Calls that the library must refuse; `scripts/messages.py` makes them all and prints what it says.

They are made in a process of their own, as a user would: no type checker in between (under it
`sample(0, "10")` would never reach the library's own check), float32, and every warning an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mistake import Mistake, array, exponential, keys, raising

NAN, INF = (float("nan"), float("inf"))


def gain(value: Any) -> Mistake:
    return lambda lf: lf.stimuli.NLGP(40, gain=value)


def shape(value: Any) -> Mistake:
    return lambda lf: lf.stimuli.Gaussian(value)


def kernel(value: Any) -> Mistake:
    return lambda lf: lf.stimuli.Gaussian(4, kernel=value)


def row(value: Any) -> Mistake:
    return kernel(value)


def plain(value: Any) -> Mistake:
    return lambda lf: lf.from_json(value)


def law(value: Any) -> Mistake:
    return lambda lf: lf.stimuli.Copula(40, marginal_law=value)


def quantile(function: Any) -> Mistake:
    return lambda lf: lf.marginals.Tabulated.of(function)


def num(value: Any) -> Mistake:
    return lambda lf: lf.stimuli.Gaussian(40).sample(0, value)


def seed(make: Callable[[], Any]) -> Mistake:
    return lambda lf: lf.stimuli.Gaussian(40).sample(make(), 1)


def samples(value: Any) -> Mistake:
    return lambda lf: lf.marginals.Empirical(value)


def weights(value: Any) -> Mistake:
    return lambda lf: lf.marginals.Empirical([1.0, 2.0], weights=value)


def matrix(sites: int, value: Any) -> Mistake:
    return lambda lf: lf.stimuli.DenseGaussian(sites, value)


def wanted(value: Any, **others: Any) -> Mistake:
    return lambda lf: lf.stimuli.NLGP.with_correlation(value, **others)


def pulse(sites: int = 40, **values: Any) -> Mistake:
    return lambda lf: lf.stimuli.SinglePulse(sites, **values)


def block(length: Any) -> Mistake:
    return lambda lf: lf.stimuli.BlockPulse(40, length=length)


def moment(order: Any) -> Mistake:
    return lambda lf: lf.marginals.Laplace().abs_moment(order)


TWO_LINES = "first line\nsecond line\n" + 2000 * "x"
MISTAKES: dict[str, Mistake] = {
    # numbers
    "gain negative": gain(-1),
    "gain zero": gain(0),
    "gain minus zero": gain(-0.0),
    "gain nan": gain(NAN),
    "gain infinite": gain(INF),
    "gain beyond floats": gain(10**400),
    "gain a word": gain("big"),
    "gain a text of a number": gain("3"),
    "gain none": gain(None),
    "gain boolean": gain(True),
    "gain complex": gain(1 + 2j),
    "gain complex array": gain([1 + 2j]),
    "gain boolean array": gain([True, False]),
    "gain texts": gain(["3", "4"]),
    "gain dictionary": gain({"value": 1}),
    "gain matrix": gain([[1, 2], [3, 4]]),
    "gain ragged": gain([[1], [1, 2]]),
    "gain empty": gain([]),
    "gain one bad of a sweep": gain([1, 2, -3, 4]),
    "k two": lambda lf: lf.stimuli.Kur(40, k=2),
    "k below two": lambda lf: lf.stimuli.Kur(40, k=1.5),
    "k of the marginal": lambda lf: lf.marginals.Algebraic(2),
    "lengthscale zero": lambda lf: lf.stimuli.NLGP(40, xi=0),
    "lengthscale negative": lambda lf: lf.stimuli.NLGP(40, xi=-3),
    "nu two": lambda lf: lf.stimuli.StudentT(40, nu=2),
    "nu of the marginal": lambda lf: lf.marginals.StudentT(1),
    "coupling large": lambda lf: lf.stimuli.Ising(40, coupling=50),
    "separation one": lambda lf: lf.marginals.NormalMixture(1),
    "scale zero": lambda lf: lf.marginals.Laplace(scale=0),
    "offset infinite": lambda lf: lf.stimuli.Gaussian(40, offset=INF),
    # lattices
    "shape empty": shape(()),
    "shape zero": shape((0,)),
    "shape negative": shape((10, -3)),
    "shape fractional": shape((10.5,)),
    "shape float": shape(40.0),
    "shape text": shape("40"),
    "shape none": shape(None),
    "shape boolean": shape((True, 4)),
    "shape nested": shape([[2, 3]]),
    "shape set": shape({4}),
    "shape scalar array": lambda lf: lf.stimuli.Gaussian(array(5)[0:1].reshape(())),
    "shape huge": shape((10**9,)),
    "shape one site": shape((1,)),
    "shape four axes": shape((4, 4, 4, 4)),
    "Ising on a torus": lambda lf: lf.stimuli.Ising((5, 5)),
    "distance negative": lambda lf: lf.lattice.distance((-3,)),
    "Fourier basis of a text": lambda lf: lf.lattice.fourier_basis("ring"),
    # kernels
    "kernel misspelled": kernel("square-exponential"),
    "kernel unknown": kernel("zzz"),
    "kernel with an option": kernel("periodized:xi=2"),
    "kernel none": kernel(None),
    "kernel a marginal": lambda lf: lf.stimuli.Gaussian(4, kernel=lf.marginals.Laplace()),
    "kernel a class": lambda lf: lf.stimuli.Gaussian(4, kernel=lf.lattice.Periodized),
    "row too short": row([1, 0.5, 0.2]),
    "row a number": row(0.5),
    "row asymmetric": row([1, 0.5, 0.2, 0.1]),
    "row not one at zero": row([2, 0.5, 0.2, 0.5]),
    "row above one": row([1, 1.5, 0.2, 1.5]),
    "row nan": row([1, NAN, 0.2, NAN]),
    "row of texts": row(["1", "0"]),
    "kernel function raises": row(raising("no such thing")),
    "kernel function raises at length": row(raising(TWO_LINES)),
    "kernel function of two": row(lambda d, xi: d),
    "kernel function shortens": row(lambda d: d[:2]),
    "kernel function zero lengthscale": lambda lf: lf.stimuli.Gaussian(4, xi=0, kernel=lambda d: d),
    "kernel function swept lengthscale": lambda lf: lf.stimuli.Gaussian(
        4, xi=[1, 2], kernel=lambda d: d
    ),
    "row with swept lengthscale": lambda lf: lf.stimuli.Gaussian(
        4, xi=[1, 2], kernel=[1, 0.5, 0.2, 0.5]
    ),
    "field misspelled": lambda lf: lf.stimuli.NLGP(40, gian=3),
    "field unknown": lambda lf: lf.stimuli.NLGP(40, zzz=3),
    "field unknown in replace": lambda lf: lf.stimuli.NLGP(40).replace(gian=3),
    "value bad in replace": lambda lf: lf.stimuli.NLGP(40).replace(gain=-3),
    "too many values": lambda lf: lf.stimuli.NLGP(40, 3, 3, "periodized", 5),
    "value given twice": lambda lf: lf.stimuli.NLGP(40, 3, xi=2),
    "JSON list": plain([1]),
    "JSON text": plain("nlgp"),
    "JSON none": plain(None),
    "JSON without type": plain({"shape": [40]}),
    "JSON type a number": plain({"type": 3}),
    "JSON family unknown": plain({"type": "stim/nlgp"}),
    "JSON stimulus unknown": plain({"type": "stimulus/nlpg"}),
    "JSON stimulus abstract": plain({"type": "stimulus/gaussian-copula"}),
    "JSON marginal unknown": plain({"type": "marginal/laplas"}),
    "JSON kernel unknown": plain({"type": "kernel/abc"}),
    "JSON extra key": plain({"type": "stimulus/nlgp", "gan": 3}),
    "JSON key self": plain({"type": "stimulus/nlgp", "self": 3}),
    "JSON key a number": plain({"type": "stimulus/nlgp", 3: 3}),
    "JSON shape a text": plain({"type": "stimulus/nlgp", "shape": "40"}),
    "JSON nested wrong family": plain(
        {"type": "stimulus/copula", "marginal_law": {"type": "stimulus/nlgp"}}
    ),
    "JSON nested extra key": plain(
        {"type": "stimulus/copula", "marginal_law": {"type": "marginal/laplace", "scle": 1}}
    ),
    "marginal a number": law(3.0),
    "marginal a list": law([1, 2]),
    "marginal none": law(None),
    "marginal a class": lambda lf: lf.stimuli.Copula(40, marginal_law=lf.marginals.Laplace),
    "marginal a kernel": lambda lf: lf.stimuli.Copula(40, marginal_law=lf.lattice.Periodized()),
    "marginal misspelled": lambda lf: lf.stimuli.Copula(40, marginal_law="laplac"),
    "marginal with a bad option": lambda lf: lf.stimuli.Copula(40, marginal_law="student-t:nu=1"),
    "marginal of a sphere": lambda lf: lf.stimuli.Copula(
        40, marginal_law=lf.marginals.SphereProjection()
    ),
    "quantiles falling": quantile(lambda u: -u),
    "quantiles constant": quantile(lambda u: 0 * u),
    "quantiles infinite": quantile(lambda u: u + INF),
    "quantiles nan": quantile(lambda u: u * NAN),
    "quantiles one number": quantile(lambda u: 3.0),
    "quantiles raise": quantile(raising(TWO_LINES)),
    "quantiles a number": quantile(3),
    "table short": lambda lf: lf.marginals.Tabulated([1.0, 2.0]),
    "radius negative": lambda lf: lf.stimuli.Elliptical(40, radial=lambda u: u - 0.5),
    "radius another law": lambda lf: lf.stimuli.Elliptical(40, radial="laplace"),
    "radius a number": lambda lf: lf.stimuli.Elliptical(40, radial=2.0),
    "samples one": samples([1.0]),
    "samples constant": samples([2.0, 2.0]),
    "samples with nan": samples([1.0, NAN]),
    "samples empty": samples([]),
    "samples a table": samples([[1.0, 2.0]]),
    "samples a text": samples("abc"),
    "samples complex": samples([1j, 2.0]),
    "weights negative": weights([1, -1]),
    "weights too many": weights([1, 1, 1]),
    "weights zero": weights([0, 0]),
    "weights on one value alone": lambda lf: lf.marginals.Empirical([1.0, 2.0], weights=[1, 0]),
    "sphere in one dimension": lambda lf: lf.marginals.SphereProjection(1),
    "sphere weights too few": lambda lf: lf.marginals.SphereProjection(3, [1, 2]),
    "sphere radii zero": lambda lf: lf.marginals.SphereProjection(3, [0]),
    "moment zero": moment(0),
    "moment negative": moment(-1),
    "moment nan": moment(NAN),
    "moment a text": moment("four"),
    "correlation unreachable": lambda lf: lf.marginals.TwoPoint().latent_correlation(1.5),
    "correlation nan": lambda lf: lf.marginals.Laplace().latent_correlation(NAN),
    "pulse out of order": pulse(shortest=8, longest=4),
    "pulse too long": pulse(longest=41),
    "pulse zero": pulse(shortest=0),
    "pulse fractional": pulse(shortest=1.5),
    "pulse coding": pulse(coding="sign"),
    "pulse coding a number": pulse(coding=1),
    "pulse everywhere": pulse(sites=8, shortest=8, longest=8, coding="zero-one"),
    "block does not divide": block(7),
    "block everywhere": block(40),
    "block negative": block(-4),
    "block infinite": block(INF),
    "num zero": num(0),
    "num negative": num(-1),
    "num fractional": num(1.5),
    "num a text": num("10"),
    "num none": num(None),
    "num boolean": num(True),
    "num too large": lambda lf: lf.stimuli.Gaussian(40).sample(0, 10**9),
    "key a text": seed(lambda: "a"),
    "key negative": seed(lambda: -1),
    "key fractional": seed(lambda: 0.5),
    "key none": seed(lambda: None),
    "key boolean": seed(lambda: True),
    "key several": seed(lambda: keys(3)),
    "key a numpy array": seed(lambda: array(0, 1)),
    "sample from a sweep": lambda lf: lf.stimuli.NLGP(40, gain=[1, 2]).sample(0, 2),
    "covariance of a sweep": lambda lf: lf.stimuli.NLGP(2, xi=0.5, gain=[1, 2]).covariance(),
    "covariance of a swept ring": lambda lf: lf.stimuli.Ising(2, coupling=[0.1, 0.9]).covariance(),
    "clone of a sweep": lambda lf: lf.stimuli.StudentT(24, xi=[1, 2]).gaussian_clone(),
    "sample from a sweep of the marginal": lambda lf: lf.stimuli.Copula(
        40, marginal_law=lf.marginals.StudentT([3, 4])
    ).sample(0, 2),
    "matrix too small": matrix(3, [[1, 0], [0, 1]]),
    "matrix asymmetric": matrix(2, [[1, 0.5], [0.2, 1]]),
    "matrix indefinite": matrix(2, [[1, 2], [2, 1]]),
    "matrix a row": matrix(2, [1, 2]),
    "matrix nan": matrix(2, [[1, NAN], [NAN, 1]]),
    "matrix zero": matrix(2, [[0, 0], [0, 0]]),
    "wanted above one": wanted([1, 1.5]),
    "wanted not one at zero": wanted([0.9, 0.2]),
    "wanted asymmetric": wanted([1, 0.5, 0.2, 0.1]),
    "wanted a text": wanted("ising"),
    "wanted with a lengthscale": wanted([1, 0.2], xi=3),
    "wanted beyond an asymmetric law": lambda lf: lf.stimuli.Copula.with_correlation(
        [1, -0.99], marginal_law=exponential
    ),
    "wanted through no Gaussian": wanted([1, 0.5, 0, 0.5], gain=1000000.0),
    "inverse of a singular row": lambda lf: lf.lattice.inverse(array(1.0, 1.0, 1.0, 1.0)),
}
