"""Ising rings and pairs of them."""

import localfields as lf


def ising(n, j):
    return lf.stimuli.Ising(n, coupling=j)


def task_of(pair, n=40, **options):
    return lf.Discrimination(*(ising(n, j) for j in pair), **options)
