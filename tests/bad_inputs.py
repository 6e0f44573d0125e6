"""A table of mistakes, each with the four parts its message must have. Run as a program, it makes them all.

They are made in a process of their own, as a user would: no type checker in between (under it `sample(0, "10")` would
never reach the library's own check), float32, and every warning an error.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from mistake import Mistake, array, attempt, exponential, keys, raising

NAN, INF = float("nan"), float("inf")


def gain(
    value: Any, got: str, advice: str = "Gain 0 is the Gaussian limit", expected: str = "positive"
) -> Mistake:
    return Mistake(lambda lf: lf.stimuli.NLGP(40, gain=value), "`gain`", expected, got, advice)


def shape(value: Any, got: str, expected: str = "a tuple of positive whole numbers") -> Mistake:
    return Mistake(
        lambda lf: lf.stimuli.Gaussian(value), "`shape`", expected, got, "Give (40,) for a ring"
    )


def kernel(value: Any, got: str, expected: str, advice: str, what: str = "`kernel`") -> Mistake:
    return Mistake(lambda lf: lf.stimuli.Gaussian(4, kernel=value), what, expected, got, advice)


def row(
    value: Any, got: str, expected: str, advice: str = "Give one value a displacement"
) -> Mistake:
    return kernel(value, got, expected, advice)


def plain(value: Any, what: str, expected: str, got: str, advice: str) -> Mistake:
    return Mistake(lambda lf: lf.from_json(value), what, expected, got, advice)


def law(
    value: Any, got: str, expected: str = "a marginal", advice: str = "Choose one of: algebraic"
) -> Mistake:
    return Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law=value),
        "`marginal_law`",
        expected,
        got,
        advice,
    )


def quantile(function: Any, what: str, expected: str, got: str, advice: str) -> Mistake:
    return Mistake(lambda lf: lf.marginals.Tabulated.of(function), what, expected, got, advice)


def num(value: Any, got: str, advice: str = "in that range") -> Mistake:
    expected = "a whole number from 1 to 2147483648"
    return Mistake(
        lambda lf: lf.stimuli.Gaussian(40).sample(0, value), "`num`", expected, got, advice
    )


def seed(make: Callable[[], Any], got: str) -> Mistake:
    draw = lambda lf: lf.stimuli.Gaussian(40).sample(make(), 1)  # noqa: E731
    return Mistake(draw, "`key`", "one JAX random key or a whole number", got, "jax.random.key(0)")


def samples(value: Any, expected: str, got: str, advice: str = "finite numbers") -> Mistake:
    return Mistake(lambda lf: lf.marginals.Empirical(value), "`samples`", expected, got, advice)


def weights(value: Any, got: str) -> Mistake:
    make = lambda lf: lf.marginals.Empirical([1.0, 2.0], weights=value)  # noqa: E731
    return Mistake(make, "`weights`", "2 numbers that are not negative", got, "Leave them out")


def matrix(sites: int, value: Any, expected: str, got: str, advice: str) -> Mistake:
    return Mistake(
        lambda lf: lf.stimuli.DenseGaussian(sites, value), "`matrix`", expected, got, advice
    )


def wanted(value: Any, what: str, expected: str, got: str, advice: str, **others: Any) -> Mistake:
    return Mistake(
        lambda lf: lf.stimuli.NLGP.with_correlation(value, **others), what, expected, got, advice
    )


def pulse(
    what: str, expected: str, got: str, advice: str, sites: int = 40, **values: Any
) -> Mistake:
    return Mistake(lambda lf: lf.stimuli.SinglePulse(sites, **values), what, expected, got, advice)


def block(length: Any, expected: str, got: str, advice: str) -> Mistake:
    return Mistake(
        lambda lf: lf.stimuli.BlockPulse(40, length=length), "`length`", expected, got, advice
    )


def moment(order: Any, got: str, advice: str = "Moments of order 1, 2 and 4") -> Mistake:
    return Mistake(
        lambda lf: lf.marginals.Laplace().abs_moment(order), "`order`", "positive", got, advice
    )


NLGP = "A field of NLGP"
PLAIN = "Give a plain number"
FIELDS = "one of gain, kernel, shape, xi"
TYPE = "The `type` of a specification"
EXAMPLE = '{"type": "stimulus/nlgp"'
CLOSED = "the variance is infinite"
TWO_LINES = "first line\nsecond line\n" + 2000 * "x"

MISTAKES: dict[str, Mistake] = {
    # numbers
    "gain negative": gain(-1, "-1.0"),
    "gain zero": gain(0, "0.0"),
    "gain minus zero": gain(-0.0, "-0.0"),
    "gain nan": gain(NAN, "nan"),
    "gain infinite": gain(INF, "inf"),
    "gain beyond floats": gain(10**400, "1000", PLAIN),
    "gain a word": gain("big", "'big'", PLAIN),
    "gain a text of a number": gain("3", "'3'", PLAIN),
    "gain none": gain(None, "None", PLAIN),
    "gain boolean": gain(True, "True", PLAIN),
    "gain complex": gain(1 + 2j, "(1+2j)", PLAIN),
    "gain complex array": gain([1 + 2j], "[(1+2j)]", PLAIN),
    "gain boolean array": gain([True, False], "[True, False]", PLAIN),
    "gain texts": gain(["3", "4"], "['3', '4']", PLAIN),
    "gain dictionary": gain({"value": 1}, "{'value': 1}", PLAIN),
    "gain matrix": gain(
        [[1, 2], [3, 4]],
        "an array of shape (2, 2)",
        PLAIN,
        "one number, or a one-dimensional array",
    ),
    "gain ragged": gain([[1], [1, 2]], "[[1], [1, 2]]", PLAIN),
    "gain empty": gain(
        [], "an array of shape (0,)", PLAIN, "one number, or a one-dimensional array"
    ),
    "gain one bad of a sweep": gain([1, 2, -3, 4], "-3.0"),
    "k two": Mistake(lambda lf: lf.stimuli.Kur(40, k=2), "`k`", "a number above 2", "2.0", CLOSED),
    "k below two": Mistake(
        lambda lf: lf.stimuli.Kur(40, k=1.5), "`k`", "a number above 2", "1.5", CLOSED
    ),
    "k of the marginal": Mistake(
        lambda lf: lf.marginals.Algebraic(2), "`k`", "a number above 2", "2.0", CLOSED
    ),
    "lengthscale zero": Mistake(
        lambda lf: lf.stimuli.NLGP(40, xi=0), "`xi`", "positive", "0.0", "lengthscale"
    ),
    "lengthscale negative": Mistake(
        lambda lf: lf.stimuli.NLGP(40, xi=-3), "`xi`", "positive", "-3.0", "lengthscale"
    ),
    "nu two": Mistake(
        lambda lf: lf.stimuli.StudentT(40, nu=2), "`nu`", "a number above 2", "2.0", CLOSED
    ),
    "nu of the marginal": Mistake(
        lambda lf: lf.marginals.StudentT(1), "`nu`", "a number above 2", "1.0", CLOSED
    ),
    "coupling large": Mistake(
        lambda lf: lf.stimuli.Ising(40, coupling=50),
        "`coupling`",
        "above -20 and below 20",
        "50.0",
        "one domain",
    ),
    "separation one": Mistake(
        lambda lf: lf.marginals.NormalMixture(1),
        "`separation`",
        "at least 0 and at most 0.9",
        "1.0",
        "or `TwoPoint`",
    ),
    "scale zero": Mistake(
        lambda lf: lf.marginals.Laplace(scale=0), "`scale`", "positive", "0.0", "Use 1"
    ),
    "offset infinite": Mistake(
        lambda lf: lf.stimuli.Gaussian(40, offset=INF), "`offset`", "a finite number", "inf", PLAIN
    ),
    # lattices
    "shape empty": shape((), "()", "a lattice of 1 to 3 axes"),
    "shape zero": shape((0,), "(0,)"),
    "shape negative": shape((10, -3), "(10, -3)"),
    "shape fractional": shape((10.5,), "(10.5,)"),
    "shape float": shape(40.0, "40.0"),
    "shape text": shape("40", "'40'"),
    "shape none": shape(None, "None"),
    "shape boolean": shape((True, 4), "(True, 4)"),
    "shape nested": shape([[2, 3]], "[[2, 3]]"),
    "shape set": shape({4}, "{4}"),
    "shape scalar array": Mistake(
        lambda lf: lf.stimuli.Gaussian(array(5)[0:1].reshape(())),
        "`shape`",
        "a tuple of positive whole numbers",
        "array(5)",
        "Give (40,)",
    ),
    "shape huge": shape((10**9,), "(1000000000,)", "a lattice of 2 to 16777216 sites"),
    "shape one site": shape((1,), "(1,)", "a lattice of 2 to 16777216 sites"),
    "shape four axes": shape((4, 4, 4, 4), "(4, 4, 4, 4)", "a lattice of 1 to 3 axes"),
    "Ising on a torus": Mistake(
        lambda lf: lf.stimuli.Ising((5, 5)),
        "`shape`",
        "a lattice of 1 axis",
        "(5, 5)",
        "lives on a ring",
    ),
    "distance negative": Mistake(
        lambda lf: lf.lattice.distance((-3,)),
        "`shape`",
        "a tuple of positive whole numbers",
        "(-3,)",
        "Give (40,)",
    ),
    "Fourier basis of a text": Mistake(
        lambda lf: lf.lattice.fourier_basis("ring"),
        "`shape`",
        "positive whole numbers",
        "'ring'",
        "Give (40,)",
    ),
    # kernels
    "kernel misspelled": kernel(
        "square-exponential",
        "'square-exponential'",
        "one of given",
        "Did you mean `squared-exponential`?",
        "The kernel",
    ),
    "kernel unknown": kernel(
        "zzz", "'zzz'", "one of given", "Choose one from that list", "The kernel"
    ),
    "kernel with an option": kernel(
        "periodized:xi=2", "'xi'", "left out", "Remove it", "A field of Periodized"
    ),
    "kernel none": kernel(None, "None", "an array of numbers", "Give a list or an array"),
    "kernel a marginal": Mistake(
        lambda lf: lf.stimuli.Gaussian(4, kernel=lf.marginals.Laplace()),
        "`kernel`",
        "a kernel",
        "Laplace(scale=1.0)",
        "Choose one of: given",
    ),
    "kernel a class": Mistake(
        lambda lf: lf.stimuli.Gaussian(4, kernel=lf.lattice.Periodized),
        "`kernel`",
        "a kernel",
        "the class Periodized",
        "Call it: Periodized()",
    ),
    "row too short": row([1, 0.5, 0.2], "a row of shape (3,)", "of the lattice's shape (4,)"),
    "row a number": row(0.5, "a row of shape ()", "of the lattice's shape (4,)"),
    "row asymmetric": row(
        [1, 0.5, 0.2, 0.1], "its mirror image by 0.4", "a row with C(d) = C(−d)", "symmetrize it"
    ),
    "row not one at zero": row(
        [2, 0.5, 0.2, 0.5], "2.0", "1 at displacement zero", "Divide the row"
    ),
    "row above one": row(
        [1, 1.5, 0.2, 1.5], "1.5", "between −1 and 1", "Give correlations, not covariances"
    ),
    "row nan": row([1, NAN, 0.2, NAN], "2 nan or infinite", "finite throughout", "finite numbers"),
    "row of texts": row(["1", "0"], "['1', '0']", "an array of numbers", "finite numbers"),
    "kernel function raises": row(
        raising("no such thing"),
        "an error from it (no such thing)",
        "a function of distance",
        "It is called once",
    ),
    "kernel function raises at length": row(
        raising(TWO_LINES),
        "an error from it (first line second line xxx",
        "a function of distance",
        "It is called once",
    ),
    "kernel function of two": row(
        lambda d, xi: d, "missing 1 required", "a function of distance", "It is called once"
    ),
    "kernel function shortens": row(
        lambda d: d[:2], "a row of shape (2,)", "of the lattice's shape (4,)"
    ),
    "kernel function zero lengthscale": Mistake(
        lambda lf: lf.stimuli.Gaussian(4, xi=0, kernel=lambda d: d),
        "`xi`",
        "positive",
        "0.0",
        PLAIN,
    ),
    "kernel function swept lengthscale": Mistake(
        lambda lf: lf.stimuli.Gaussian(4, xi=[1, 2], kernel=lambda d: d),
        "`xi`",
        "one number",
        "2 values",
        "to sweep",
    ),
    "row with swept lengthscale": Mistake(
        lambda lf: lf.stimuli.Gaussian(4, xi=[1, 2], kernel=[1, 0.5, 0.2, 0.5]),
        "`xi`",
        "one number when the kernel is a fixed row",
        "2 values",
        "to sweep",
    ),
    # names
    "field misspelled": Mistake(
        lambda lf: lf.stimuli.NLGP(40, gian=3), NLGP, FIELDS, "'gian'", "Did you mean `gain`?"
    ),
    "field unknown": Mistake(
        lambda lf: lf.stimuli.NLGP(40, zzz=3), NLGP, FIELDS, "'zzz'", "Choose one"
    ),
    "field unknown in replace": Mistake(
        lambda lf: lf.stimuli.NLGP(40).replace(gian=3),
        NLGP,
        FIELDS,
        "'gian'",
        "Did you mean `gain`?",
    ),
    "value bad in replace": Mistake(
        lambda lf: lf.stimuli.NLGP(40).replace(gain=-3),
        "`gain`",
        "positive",
        "-3.0",
        "Gaussian limit",
    ),
    "too many values": Mistake(
        lambda lf: lf.stimuli.NLGP(40, 3, 3, "periodized", 5),
        "The number of values for NLGP",
        "at most 4",
        "5",
        "They are shape, xi, gain, kernel",
    ),
    "value given twice": Mistake(
        lambda lf: lf.stimuli.NLGP(40, 3, xi=2),
        "`xi`",
        "given once",
        "two values",
        "by position or by name",
    ),
    # JSON
    "JSON list": plain([1], "A specification", "a JSON object", "[1]", EXAMPLE),
    "JSON text": plain("nlgp", "A specification", "a JSON object", "'nlgp'", EXAMPLE),
    "JSON none": plain(None, "A specification", "a JSON object", "None", EXAMPLE),
    "JSON without type": plain({"shape": [40]}, TYPE, "stimulus/…", "None", EXAMPLE),
    "JSON type a number": plain({"type": 3}, TYPE, "stimulus/…", "3", EXAMPLE),
    "JSON family unknown": plain({"type": "stim/nlgp"}, TYPE, "stimulus/…", "'stim/nlgp'", EXAMPLE),
    "JSON stimulus unknown": plain(
        {"type": "stimulus/nlpg"}, "The stimulus", "nlgp, samples", "'nlpg'", "Did you mean `nlgp`?"
    ),
    "JSON stimulus abstract": plain(
        {"type": "stimulus/gaussian-copula"},
        "The stimulus",
        "one of block-pulse",
        "'gaussian-copula'",
        "Did you mean",
    ),
    "JSON marginal unknown": plain(
        {"type": "marginal/laplas"},
        "The marginal",
        "laplace, logistic",
        "'laplas'",
        "Did you mean `laplace`?",
    ),
    "JSON kernel unknown": plain(
        {"type": "kernel/abc"}, "The kernel", "one of given", "'abc'", "Choose one"
    ),
    "JSON extra key": plain(
        {"type": "stimulus/nlgp", "gan": 3}, NLGP, FIELDS, "'gan'", "Did you mean `gain`?"
    ),
    "JSON key self": plain(
        {"type": "stimulus/nlgp", "self": 3}, NLGP, FIELDS, "'self'", "Choose one"
    ),
    "JSON key a number": plain({"type": "stimulus/nlgp", 3: 3}, NLGP, FIELDS, "3", "Choose one"),
    "JSON shape a text": plain(
        {"type": "stimulus/nlgp", "shape": "40"},
        "`shape`",
        "a tuple of positive whole numbers",
        "'40'",
        "Give (40,)",
    ),
    "JSON nested wrong family": plain(
        {"type": "stimulus/copula", "marginal_law": {"type": "stimulus/nlgp"}},
        "`marginal_law`",
        "a marginal",
        "NLGP(shape=(40,))",
        "Choose one of: algebraic",
    ),
    "JSON nested extra key": plain(
        {"type": "stimulus/copula", "marginal_law": {"type": "marginal/laplace", "scle": 1}},
        "A field of Laplace",
        "one of scale",
        "'scle'",
        "Did you mean `scale`?",
    ),
    # marginals
    "marginal a number": law(3.0, "3.0"),
    "marginal a list": law([1, 2], "[1, 2]"),
    "marginal none": law(None, "None"),
    "marginal a class": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law=lf.marginals.Laplace),
        "`marginal_law`",
        "a marginal",
        "the class Laplace",
        "Call it: Laplace()",
    ),
    "marginal a kernel": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law=lf.lattice.Periodized()),
        "`marginal_law`",
        "a marginal",
        "Periodized()",
        "Choose one of",
    ),
    "marginal misspelled": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law="laplac"),
        "The marginal",
        "laplace, logistic",
        "'laplac'",
        "Did you mean `laplace`?",
    ),
    "marginal with a bad option": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law="student-t:nu=1"),
        "`nu`",
        "a number above 2",
        "1.0",
        CLOSED,
    ),
    "marginal of a sphere": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law=lf.marginals.SphereProjection()),
        "`marginal_law`",
        "a law that a copula can sample",
        "SphereProjection(",
        "elliptical stimulus",
    ),
    "quantiles falling": quantile(
        lambda u: -u, "`table`", "increasing", "falls, or is constant", "rise with u"
    ),
    "quantiles constant": quantile(
        lambda u: 0 * u, "`table`", "increasing", "falls, or is constant", "rise with u"
    ),
    "quantiles infinite": quantile(
        lambda u: u + INF,
        "The quantile function's result",
        "finite",
        "nan or infinite values",
        "near 0 and 1",
    ),
    "quantiles nan": quantile(
        lambda u: u * NAN,
        "The quantile function's result",
        "finite",
        "nan or infinite values",
        "near 0 and 1",
    ),
    "quantiles one number": quantile(
        lambda u: 3.0,
        "The quantile function's result",
        "one number for each u",
        "shape ()",
        "near 0 and 1",
    ),
    "quantiles raise": quantile(
        raising(TWO_LINES),
        "The quantile function",
        "a function",
        "(first line second",
        "It is called once",
    ),
    "quantiles a number": quantile(
        3, "The quantile function", "a function", "not callable", "It is called once"
    ),
    "table short": Mistake(
        lambda lf: lf.marginals.Tabulated([1.0, 2.0]),
        "`table`",
        "4097 quantiles",
        "shape (2,)",
        "Use `Tabulated.of",
    ),
    "radius negative": Mistake(
        lambda lf: lf.stimuli.Elliptical(40, radial=lambda u: u - 0.5),
        "`radial`",
        "r ≥ 0",
        "-0.5",
        "not negative",
    ),
    "radius another law": Mistake(
        lambda lf: lf.stimuli.Elliptical(40, radial="laplace"),
        "`radial`",
        "a quantile function",
        "Laplace(",
        "Give a",
    ),
    "radius a number": Mistake(
        lambda lf: lf.stimuli.Elliptical(40, radial=2.0),
        "`radial`",
        "a marginal",
        "2.0",
        "Choose one of",
    ),
    "samples one": samples(
        [1.0], "at least two different values", "one value throughout", "Check the data"
    ),
    "samples constant": samples(
        [2.0, 2.0], "at least two different values", "one value throughout", "Check the data"
    ),
    "samples with nan": samples([1.0, NAN], "finite throughout", "1 nan or infinite"),
    "samples empty": samples([], "a non-empty array with one axis", "shape (0,)"),
    "samples a table": samples([[1.0, 2.0]], "a non-empty array with one axis", "shape (1, 2)"),
    "samples a text": samples("abc", "an array of numbers", "'abc'"),
    "samples complex": samples([1j, 2.0], "an array of numbers", "[1j, 2.0]"),
    "weights negative": weights([1, -1], "array([ 1., -1.])"),
    "weights too many": weights([1, 1, 1], "array([1., 1., 1.])"),
    "weights zero": weights([0, 0], "array([0., 0.])"),
    "weights on one value alone": Mistake(
        lambda lf: lf.marginals.Empirical([1.0, 2.0], weights=[1, 0]),
        "`samples`",
        "at least two different values",
        "one value throughout",
        "Check the data",
    ),
    "sphere in one dimension": Mistake(
        lambda lf: lf.marginals.SphereProjection(1),
        "`dimension`",
        "from 2 to",
        "1",
        "Give a whole number",
    ),
    "sphere weights too few": Mistake(
        lambda lf: lf.marginals.SphereProjection(3, [1, 2]),
        "`weights`",
        "2 numbers",
        "array([1.])",
        "one weight a radius",
    ),
    "sphere radii zero": Mistake(
        lambda lf: lf.marginals.SphereProjection(3, [0]),
        "`radii`",
        "positive",
        "array([0.])",
        "not negative",
    ),
    "moment zero": moment(0, "0.0"),
    "moment negative": moment(-1, "-1.0"),
    "moment nan": moment(NAN, "nan"),
    "moment a text": moment("four", "'four'", PLAIN),
    "correlation unreachable": Mistake(
        lambda lf: lf.marginals.TwoPoint().latent_correlation(1.5),
        "A wanted correlation",
        "between -1 and 1",
        "1.5",
        "No latent correlation gives it",
    ),
    "correlation nan": Mistake(
        lambda lf: lf.marginals.Laplace().latent_correlation(NAN),
        "A wanted correlation",
        "between -1 and 1",
        "nan",
        "No latent correlation gives it",
    ),
    # pulses
    "pulse out of order": pulse(
        "`shortest` and `longest`",
        "in order",
        "lengths from 8 to 4",
        "the longest pulse",
        shortest=8,
        longest=4,
    ),
    "pulse too long": pulse(
        "`shortest` and `longest`", "at most 40", "4 to 41", "the longest pulse", longest=41
    ),
    "pulse zero": pulse(
        "`shortest`", "a whole number from 1", "0", "Give a whole number", shortest=0
    ),
    "pulse fractional": pulse(
        "`shortest`", "a whole number from 1", "1.5", "Give a whole number", shortest=1.5
    ),
    "pulse coding": pulse(
        "`coding`", "one of signs, zero-one", "'sign'", "Did you mean `signs`?", coding="sign"
    ),
    "pulse coding a number": pulse(
        "`coding`", "one of signs, zero-one", "1", "Choose one", coding=1
    ),
    "pulse everywhere": pulse(
        "`shortest`",
        "less than the whole",
        "8",
        "Shorten it",
        sites=8,
        shortest=8,
        longest=8,
        coding="zero-one",
    ),
    "block does not divide": block(
        7, "a proper divisor of the axes of (40,)", "7", "that divides every axis"
    ),
    "block everywhere": block(
        40, "a proper divisor of the axes of (40,)", "40", "at least two blocks"
    ),
    "block negative": block(-4, "a whole number from 1", "-4", "Give a whole number"),
    "block infinite": block(INF, "a whole number from 1", "inf", "Give a whole number"),
    # drawing
    "num zero": num(0, "0"),
    "num negative": num(-1, "-1"),
    "num fractional": num(1.5, "1.5"),
    "num a text": num("10", "'10'"),
    "num none": num(None, "None"),
    "num boolean": num(True, "True"),
    "num too large": Mistake(
        lambda lf: lf.stimuli.Gaussian(40).sample(0, 10**9),
        "`num` × sites",
        "at most 2147483648",
        "40000000000",
        "Draw in pieces",
    ),
    "key a text": seed(lambda: "a", "'a'"),
    "key negative": seed(lambda: -1, "-1"),
    "key fractional": seed(lambda: 0.5, "0.5"),
    "key none": seed(lambda: None, "None"),
    "key boolean": seed(lambda: True, "True"),
    "key several": seed(lambda: keys(3), "Array((3,), dtype=key"),
    "key a numpy array": seed(lambda: array(0, 1), "array([0, 1])"),
    "sample from a sweep": Mistake(
        lambda lf: lf.stimuli.NLGP(40, gain=[1, 2]).sample(0, 2),
        "`gain`",
        "one number",
        "2 values",
        "in training",
    ),
    "covariance of a sweep": Mistake(
        lambda lf: lf.stimuli.NLGP(2, xi=0.5, gain=[1, 2]).covariance(),
        "`gain`",
        "one number",
        "2 values",
        "in training",
    ),
    "covariance of a swept ring": Mistake(
        lambda lf: lf.stimuli.Ising(2, coupling=[0.1, 0.9]).covariance(),
        "`coupling`",
        "one",
        "2 values",
        "in training",
    ),
    "clone of a sweep": Mistake(
        lambda lf: lf.stimuli.StudentT(24, xi=[1, 2]).gaussian_clone(),
        "`xi`",
        "one number",
        "2 values",
        "in training",
    ),
    "sample from a sweep of the marginal": Mistake(
        lambda lf: lf.stimuli.Copula(40, marginal_law=lf.marginals.StudentT([3, 4])).sample(0, 2),
        "`nu`",
        "one number",
        "2 values",
        "in training",
    ),
    # covariances
    "matrix too small": matrix(
        3, [[1, 0], [0, 1]], "of shape (3, 3)", "shape (2, 2)", "one row and one column"
    ),
    "matrix asymmetric": matrix(
        2, [[1, 0.5], [0.2, 1]], "a covariance", "not symmetric", "Average it"
    ),
    "matrix indefinite": matrix(
        2, [[1, 2], [2, 1]], "positive semidefinite", "an eigenvalue of -1", "Cut its"
    ),
    "matrix a row": matrix(2, [1, 2], "with 2 axes", "shape (2,)", "finite numbers"),
    "matrix nan": matrix(
        2, [[1, NAN], [NAN, 1]], "finite throughout", "2 nan or infinite", "finite numbers"
    ),
    "matrix zero": matrix(
        2, [[0, 0], [0, 0]], "a covariance", "zero throughout", "Some site must vary"
    ),
    "wanted above one": wanted(
        [1, 1.5], "`wanted`", "between −1 and 1", "1.5", "Give correlations"
    ),
    "wanted not one at zero": wanted(
        [0.9, 0.2], "`wanted`", "1 at displacement zero", "0.9", "Divide the row"
    ),
    "wanted asymmetric": wanted(
        [1, 0.5, 0.2, 0.1], "`wanted`", "C(d) = C(−d)", "its mirror image", "symmetrize it"
    ),
    "wanted a text": wanted(
        "ising", "`wanted`", "an array of numbers", "'ising'", "finite numbers"
    ),
    "wanted with a lengthscale": wanted([1, 0.2], "`xi`", "left out", "3", "It follows from", xi=3),
    "wanted beyond an asymmetric law": Mistake(
        lambda lf: lf.stimuli.Copula.with_correlation([1, -0.99], marginal_law=exponential),
        "A wanted correlation",
        "between -0.6449 and 1",
        "-0.99",
        "No latent correlation gives it",
    ),
    # The row below is a covariance itself (eigenvalues 2, 1, 0, 1), but no Gaussian's signs have it: at infinite gain
    # the latent row is sin(πC/2), with an eigenvalue of 1 − √2.
    "wanted through no Gaussian": wanted(
        [1, 0.5, 0, 0.5],
        "The wanted correlation row",
        "reachable through a Gaussian copula",
        "a smallest eigenvalue of -0.414",
        "another marginal",
        gain=1e6,
    ),
    "inverse of a singular row": Mistake(
        lambda lf: lf.lattice.inverse(array(1.0, 1.0, 1.0, 1.0)),
        "A row to invert",
        "well conditioned",
        "a smallest eigenvalue of 0",
        "Shorten the lengthscale",
    ),
}


if __name__ == "__main__":
    warnings.simplefilter("error")
    json.dump({name: attempt(mistake) for name, mistake in MISTAKES.items()}, sys.stdout)
