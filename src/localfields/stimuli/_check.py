"""Checks of a stimulus of your own: does it fit together, and do its samples follow it?"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._prng import make_key
from .._spec import Count, member, num_members
from ..errors import InputError, shorten, show
from ..marginals import Marginal
from .base import Stimulus, draw

NUM = 16  # samples that are looked at before a class is first used
MOST_SAMPLES, MOST_NUMBERS = 100_000, 4_000_000  # of `check`: fewer samples of many sites
CHUNK = 10_000
ROUNDING = 1e-6  # of the largest covariance: smaller asymmetries are rounding
LARGEST_EIGEN = 1000  # sites of a matrix whose eigenvalues are checked: half a second

_FIT: set[tuple[type[Stimulus], tuple[int, ...]]] = set()


def check_once(stimulus: Stimulus) -> None:
    """Check a stimulus of a plugin when its class and lattice are first used.

    Those of this package have tests of their own.
    """
    key = type(stimulus), stimulus.shape
    if key not in _FIT and not type(stimulus).__module__.startswith("localfields."):
        check_parts(member(stimulus, 0) if num_members(stimulus) else stimulus)
        _FIT.add(key)


def check_parts(stimulus: Stimulus) -> None:
    """Check that the parts of a stimulus have the right shapes, are finite and fit together.

    Raises:
        InputError: What is wrong, in words, and in which method.
    """
    name = type(stimulus).__name__
    mean = _call(stimulus, "mean")
    if not isinstance(mean, (int, float, np.number)) or not np.isfinite(mean):
        raise InputError(f"{name}.mean must return one finite number, got {show(mean)}.")
    variance = _check_covariance(stimulus, _call(stimulus, "covariance"))
    marginal = _call(stimulus, "marginal")
    if marginal is not None and not isinstance(marginal, Marginal):
        raise InputError(
            f"{name}.marginal must return a distribution of localfields.marginals, or None if it "
            f"is not known, got {show(marginal)}."
        )
    if marginal is not None and not np.isclose(marginal.variance, variance, rtol=1e-3):
        raise InputError(
            f"{name}.marginal has variance {marginal.variance:.6g}, and {name}.covariance says "
            f"{variance:.6g}. Correct one of them."
        )
    _check_draw(stimulus)


def _check_covariance(stimulus: Stimulus, value: Any) -> float:
    """Check a covariance. Returns the variance, averaged over sites."""
    row, whole = stimulus.shape, stimulus.shape * 2
    name = type(stimulus).__name__
    method = f"{name}.covariance"
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.shape not in (row, whole):
        got = f"shape {array.shape}" if array.dtype.kind in "iuf" else show(value)
        raise InputError(
            f"{method} must return an array of shape {row}, Cov(X_0, X_d) at every d, or {whole}, "
            f"got {got}."
        )
    if array.shape == row and not stimulus.translation_invariant:
        raise InputError(
            f"{method} must return the whole matrix, of shape {whole}, since "
            f"{name}.translation_invariant is False."
        )
    if not np.isfinite(array).all():
        raise InputError(f"{method} has values that are nan or infinite.")
    largest = np.abs(array).max()
    if array.shape == row:
        symmetric = np.roll(np.flip(array), 1, tuple(range(array.ndim)))
        values, variance = np.fft.fftn(array).real, array.flat[0]
    else:
        matrix = array.reshape(stimulus.size, stimulus.size)
        symmetric, variance = matrix.T.reshape(whole), np.diag(matrix).mean()
        values = np.linalg.eigvalsh(matrix) if stimulus.size <= LARGEST_EIGEN else np.zeros(1)
    if np.abs(array - symmetric).max() > ROUNDING * largest:
        raise InputError(
            f"{method} is not symmetric: the covariance of sites i and j must be that of j and i."
        )
    if variance <= 0 or values.min() < -ROUNDING * max(largest, np.abs(values).max()):
        raise InputError(
            f"{method} is no covariance: its smallest eigenvalue is {values.min():.3g}, and none "
            "may be negative. Check its sign."
        )
    return float(variance)


def _check_draw(stimulus: Stimulus) -> None:
    name, expected = type(stimulus).__name__, (NUM, stimulus.size)

    def drawn(stimulus: Stimulus, key: Any) -> Any:
        value = draw(stimulus, key, NUM)
        if getattr(value, "shape", None) != expected or value.dtype.kind != "f":
            got = f"{value.dtype} {value.shape}" if hasattr(value, "dtype") else show(value)
            raise InputError(
                f"{name}.draw must return numbers of type float and shape (num, {stimulus.size}), "
                f"here {expected}, got {got}."
            )
        return value

    x = _call(stimulus, "draw", lambda: jax.jit(drawn)(stimulus, make_key(0)))
    if not np.isfinite(np.asarray(x)).all():
        raise InputError(f"{name}.draw returned samples that are nan or infinite.")


def _call(stimulus: Stimulus, method: str, call: Callable[[], Any] | None = None) -> Any:
    """What a method returns; an error in it is told with its place in the user's file."""
    name = f"{type(stimulus).__name__}.{method}"
    try:
        return call() if call else getattr(stimulus, method)()
    except InputError:
        raise
    except jax.errors.ConcretizationTypeError as error:
        raise InputError(
            f"{name} decides by the value of a number{_place(stimulus, error)}, which JAX does not "
            "know while it compiles. Use `jnp.where` in place of `if`, and `jnp` in place of `np`."
        ) from error
    except Exception as error:
        raise InputError(
            f"{name} failed{_place(stimulus, error)} ({type(error).__name__}: {shorten(error)})."
        ) from error


def _place(stimulus: Stimulus, error: Exception) -> str:
    """The last line of the file that defines a stimulus at which an error passed."""
    file = inspect.getsourcefile(type(stimulus))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f" at line {lines[-1]} of {Path(file).name}" if file and lines else ""


# -- samples against what is declared --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """What `check` found; printed, it is the report.

    Args:
        stimulus: What was checked.
        num: Number of samples.
        passed: Names of the tests that samples passed.
        problems: One sentence for each test that they failed.
    """

    stimulus: Stimulus
    num: int
    passed: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether samples passed all tests."""
        return not self.problems

    def __str__(self) -> str:
        lines = [f"{self.stimulus!r}, {self.num:,} samples"]
        if self.passed:
            lines.append(f"  agrees: {', '.join(self.passed)}")
        return "\n".join([*lines, *(f"  DISAGREES: {problem}" for problem in self.problems)])


def check(stimulus: Stimulus, num: int | None = None, seed: int = 0) -> CheckReport:
    """Compare samples of a stimulus with the statistics that it declares.

    Mean, covariance, marginal, fourth moment, independence of samples, and the symmetries that the
    stimulus claims, each at five standard errors. Use it on a stimulus of your own before you trust
    a theory of it.

    Args:
        stimulus: One stimulus; its numbers must not be swept.
        num: How many samples; by default 100,000, and fewer on more than forty sites.
        seed: Seed for the samples.

    Raises:
        InputError: If what the stimulus returns has the wrong shape, is not finite, or does not fit
            together.

    Example:
        >>> import localfields as lf
        >>> print(lf.stimuli.check(lf.stimuli.Ising(8, coupling=0.5), num=20_000))
        Ising(shape=(8,), coupling=0.5), 20,000 samples
          agrees: mean, independence, covariance, marginal, fourth moment, shifts, signs
    """
    from . import _statistics as statistics
    from .samples import Rows

    if not isinstance(stimulus, Stimulus):
        raise InputError(f"`check` needs a stimulus, got {show(stimulus)}.")
    if isinstance(stimulus, Rows):
        raise InputError(
            f"{type(stimulus).__name__} has the statistics of its rows by definition: there is "
            "nothing to check. `predict` measures what theories assume of data."
        )
    stimulus.require_one("to check")
    num = max(1000, min(MOST_SAMPLES, MOST_NUMBERS // stimulus.size)) if num is None else num
    num = Count(low=1000, high=10**7).check("num", num)
    key = make_key(Count(low=0, high=2**62).check("seed", seed))
    check_parts(stimulus)
    keys = jax.random.split(key, -(-num // CHUNK))
    pieces = [np.asarray(stimulus.sample(part, CHUNK), np.float32) for part in keys]
    x = np.concatenate(pieces)[:num]
    tests = statistics.declared(stimulus)
    if stimulus.translation_invariant:
        tests["shifts"] = statistics.shift_invariance
    if stimulus.sign_symmetric:
        tests["signs"] = statistics.sign_invariance
    passed, problems = [], []
    for name, test in tests.items():
        scores = np.abs(_call(stimulus, "marginal", lambda test=test: test(stimulus, x)))
        if scores.max() <= statistics.SIGMAS:  # not where it is nan
            passed.append(name)
        else:
            place = np.unravel_index(np.nanargmax(np.nan_to_num(scores, nan=np.inf)), scores.shape)
            problem = _describe(name, stimulus, x, tuple(map(int, place)))
            problems.append(f"{problem} ({scores[place]:.3g} standard errors).")
    return CheckReport(stimulus, num, tuple(passed), tuple(problems))


def _describe(name: str, stimulus: Stimulus, x: np.ndarray, place: tuple[int, ...]) -> str:
    """What is wrong where a test failed most, with both numbers."""
    centered = x.astype(np.float64) - stimulus.mean()
    if name == "mean":
        return (
            f"mean: site {place[0]} of the samples has {x[:, place[0]].mean():.4g}, `mean` says "
            f"{stimulus.mean():.4g}"
        )
    if name == "covariance":
        i, j = place
        found, says = np.mean(centered[:, i] * centered[:, j]), stimulus.covariance_matrix()[i, j]
        pair = f"of sites {i} and {j}" if i != j else f"(variance) of site {i}"
        return f"covariance {pair}: the samples have {found:.4g}, `covariance` says {says:.4g}"
    marginal = stimulus.marginal()
    if name in ("marginal", "fourth moment") and marginal is not None:
        kurtosis = np.mean(centered**4) / np.mean(centered**2) ** 2
        return (
            f"{name}: one site is not distributed as `marginal` says; the kurtosis of the samples "
            f"is {kurtosis:.4g}, that of `marginal` {marginal.kurtosis:.4g}"
        )
    return {
        "independence": "independence: each sample depends on the one before",
        "sign correlation": "signs of two sites: they do not agree as the latent correlation says",
        "shifts": "shifts: `translation_invariant` is True, but sites are not alike",
        "signs": "signs: `sign_symmetric` is True, but X and −X are not distributed alike",
    }[name]
