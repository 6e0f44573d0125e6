"""Closed forms of the paper's data models, written down a second time for tests."""

import numpy as np
from scipy.special import beta, erf


def ising_covariance(coupling, distance, sites):
    """Of spins on a ring: (tᵈ + tᴺ⁻ᵈ)/(1 + tᴺ) with t = tanh J."""
    t = np.tanh(coupling)
    return (t**distance + t ** (sites - distance)) / (1 + t**sites)


def kur_cdf(x, k):
    """½(1 + u(1 + |u|ᵏ)^(−1/k)) at unit variance, u = σx with σ² = B(3/k, 1 − 2/k)/k."""
    u = np.asarray(x) * np.sqrt(beta(3 / k, 1 - 2 / k) / k)
    return 0.5 * (1 + u * (1 + np.abs(u) ** k) ** (-1 / k))


def kur_kurtosis(k):
    """E x⁴/(E x²)² from E |u|ⁿ = B((n + 1)/k, 1 − n/k)/k."""
    return k * beta(5 / k, 1 - 4 / k) / beta(3 / k, 1 - 2 / k) ** 2


def nlgp_kurtosis(gain):
    """Of erf(gz) with z normal, by quadrature."""
    z = np.linspace(-12, 12, 20_001)
    y, weight = erf(gain * z), normal_density(z) * (z[1] - z[0])
    return (weight @ y**4) / (weight @ y**2) ** 2


def nlgp_kurtosis_error(gain, num):
    """Standard error of that ratio from `num` independent values, to first order."""
    z = np.linspace(-12, 12, 20_001)
    y, weight = erf(gain * z), normal_density(z) * (z[1] - z[0])
    fourth, second = weight @ y**4, weight @ y**2
    change = (y**4 - fourth) / second**2 - 2 * fourth * (y**2 - second) / second**3
    return np.sqrt(weight @ change**2 / num)


def normal_density(x):
    return np.exp(-(np.asarray(x) ** 2) / 2) / np.sqrt(2 * np.pi)


def nlgp_covariance(xi, gain, distance):
    """Of erf(gz)/Z with latent correlation exp(−d²/ξ²): arcsin(c r)/arcsin(c), c = 2g²/(1 +
    2g²).
    """
    share = 2 * gain**2 / (1 + 2 * gain**2)
    return np.arcsin(share * np.exp(-((distance / xi) ** 2))) / np.arcsin(share)
