"""Numbers printed in the formula sheet: to their digits, or, where their fields are not printed,
as one more draw.
"""

import math

import numpy as np
import scipy.stats

LEVEL = scipy.stats.norm.cdf(3)  # of every interval below: three standard deviations, both ways


def digit(text):
    """Size of the last digit printed."""
    mantissa, _, power = text.partition("e")
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def rounds_to(value, text):
    """Whether a value has the digits printed."""
    return abs(value - float(text)) <= 0.5 * digit(text) * (1 + 1e-9)


def fits(text, sample, of=1, log=False):
    """Whether the mean of `of` further draws may be what is printed, given a sample of draws.

    Student's interval for a further mean (of the logarithm, if told), with half a printed digit on
    either side. It is set by the spread of the sample and a level of three standard deviations, and
    by nothing else.
    """
    low, high = float(text) - 0.5 * digit(text), float(text) + 0.5 * digit(text)
    sample = np.asarray(sample, float)
    if log:
        low, high, sample = math.log(low), math.log(high), np.log(sample)
    spread = sample.std(ddof=1) * math.sqrt(1 / of + 1 / sample.size)
    margin = scipy.stats.t.ppf(LEVEL, sample.size - 1) * spread
    return low - margin <= sample.mean() <= high + margin


def agree(count, num, found):
    """Whether `count` of `num` starts and the booleans `found` on other starts may have one
    probability (Fisher).
    """
    found = np.asarray(found, bool)
    table = [[count, num - count], [found.sum(), (~found).sum()]]
    return scipy.stats.fisher_exact(table).pvalue > 2 * (1 - LEVEL)
