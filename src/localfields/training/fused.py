"""One GPU kernel that draws, colors, maps and differentiates: a batch that never sees memory.

On a GPU a step of `independent` training is bound by moving samples through memory: normals are
written, read to be colored, written, read for the response and read again for the gradient. Here a
block of rows lives in registers from its random bits to its share of the gradient. It serves one
neuron on stimuli that are an elementwise function of a stationary Gaussian on a ring; everything
else takes the general path, with the same expectation.

The product with the root of the covariance runs on tensor cores: the root as a sum of two float16
matrices, which keeps 22 bits, and the white normals with the 11 bits of float16, which changes
their variance by less than 1e-7.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._prng import threefry
from ..lattice import matrix, row_of
from ..marginals import Algebraic, ErfNormal, Marginal, Normal
from ..networks import Network, SingleNeuron
from ..networks.base import Params
from ..tasks import Discrimination

# Cipher blocks for each site and program, which make twice as many samples: the rows of one matrix
# instruction.
ROWS = 64
ROUNDS = 13  # of the cipher: the fewest its authors call safe; its cost is the floor
MAX_SITES = 128
MAX_MEMBERS = 65_535  # what a GPU takes along the second axis of a grid


# Coefficients, highest power first: log2 erfc(x)/x on 0 < x < 4 (fitted: erf to 1.6e-7); the series
# of erf(x)/x, sin(πx)/x and cos(πx) in x².
ERF_FAR = (
    0.00010021175694419071,
    -0.00046151340939104557,
    -0.002302381210029125,
    0.029452677816152573,
)
ERF_FAR += (-0.14896376430988312, -0.9183286428451538, -1.6279137134552002)
ERF_NEAR = tuple(
    2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(3, -1, -1)
)
SINE = tuple(
    (-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(5, -1, -1)
)
# log2 erfc(x)/x on 0.25 < x < 4.1, fitted for the relative error of erfc: 3e-6, mostly rounding.
ERFC = (-3.89097436936936e-07, 9.237749509338755e-06, -9.333564230473712e-05, 0.0005017847870476544)
ERFC += (-0.001275592832826078, -0.0015614458825439215, 0.029318515211343765, -0.14918415248394012)
ERFC += (-0.9181981682777405, -1.6279330253601074)
LOG = tuple(1 / n for n in range(5, 0, -1))  # −log(1 − x)/x
EXP = tuple(1 / math.factorial(n) for n in range(5, 0, -1))  # (eˣ − 1)/x
TANH = (-17 / 315, 2 / 15, -1 / 3, 1.0)  # the series of tanh(x)/x in x²
COSINE = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(6, -1, -1))


def _polynomial(coefficients: tuple[float, ...], x: jax.Array) -> jax.Array:
    total = jnp.float32(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + jnp.float32(c)
    return total


def erf(x: jax.Array) -> jax.Array:
    """The error function in float32, without branches or divisions, which kernels cannot call."""
    size = jnp.minimum(jnp.abs(x), 4.0)
    far = 1 - jnp.exp2(size * _polynomial(ERF_FAR, size))
    return jnp.where(size < 0.25, x * _polynomial(ERF_NEAR, x * x), jnp.where(x < 0, -far, far))


def algebraic(k: jax.Array, z: jax.Array) -> jax.Array:
    """v(1 − v^k)^(−1/k) with v = P(|Z| < |z|) and the sign of z, in float32.

    It is constant beyond |z| = 5.8. Small differences from 1 are taken by their series, so that the
    tail keeps its digits.
    """
    size = jnp.minimum(jnp.abs(z) * jnp.float32(math.sqrt(0.5)), 4.1)
    outside = jnp.exp2(size * _polynomial(ERFC, size))
    v = jnp.where(size < 0.25, size * _polynomial(ERF_NEAR, size * size), 1 - outside)
    log = jnp.where(outside < 0.05, -outside * _polynomial(LOG, outside), jnp.log(v))
    power = k * log
    complement = jnp.where(power > -0.1, -power * _polynomial(EXP, power), 1 - jnp.exp(power))
    value = v * jnp.exp(jnp.log(complement) * (-1 / k))
    return jnp.where(z < 0, -value, value)


def normals(first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normals from two random integers (Box and Muller): |z| up to 5.8."""
    u = (first >> jnp.uint32(8)).astype(jnp.int32).astype(jnp.float32) * jnp.float32(
        2.0**-24
    ) + jnp.float32(2.0**-25)
    square = jnp.maximum(jnp.float32(-2) * jnp.log(u), jnp.float32(1e-12))
    radius = square * jax.lax.rsqrt(square)  # cheaper than a square root, and as good
    # The angle is πx with x in (−½, ½), and a bit of its own gives the other half of the circle.
    x = (second >> jnp.uint32(9)).astype(jnp.int32).astype(jnp.float32) * jnp.float32(
        2.0**-23
    ) - jnp.float32(0.5 - 2.0**-24)
    radius = jnp.where((second & jnp.uint32(1)) == 0, radius, -radius)
    return radius * _polynomial(COSINE, x * x), radius * x * _polynomial(SINE, x * x)


def tanh(x: jax.Array) -> jax.Array:
    """The hyperbolic tangent in float32; the kernel's own is an approximation to 11 bits."""
    fall = jnp.exp(jnp.float32(-2) * jnp.abs(x))
    far = (1 - fall) / (1 + fall)
    return jnp.where(jnp.abs(x) < 0.25, x * _polynomial(TANH, x * x), jnp.where(x < 0, -far, far))


def _linear(numbers: Sequence[Any], z: jax.Array) -> jax.Array:
    return numbers[0] * z


def _erf(numbers: Sequence[Any], z: jax.Array) -> jax.Array:
    return numbers[1] * erf(numbers[0] * z)


def _algebraic(numbers: Sequence[Any], z: jax.Array) -> jax.Array:
    return numbers[1] * algebraic(numbers[0], z)


def _as_numbers(
    marginal: Marginal | None,
) -> tuple[list[Any], Callable[..., jax.Array]] | None:
    """A marginal as two numbers and a function (numbers, z) → x that a kernel can run; or None."""
    if isinstance(marginal, Normal):
        return [marginal.scale, 0.0], _linear
    if isinstance(marginal, ErfNormal):
        return [marginal.gain, marginal.scale / marginal.deviation()], _erf
    if isinstance(marginal, Algebraic):
        return [marginal.k, marginal.scale / marginal.deviation()], _algebraic
    return None


# Activations and their slopes: a kernel cannot trace the derivative rules of `jax.nn`.
RESPONSES: dict[str, Callable[[jax.Array], tuple[jax.Array, jax.Array]]] = {
    "relu": lambda h: (jnp.maximum(h, 0), (h > 0).astype(h.dtype)),
    "identity": lambda h: (h, jnp.ones_like(h)),
    "sigmoid": lambda h: (s := 1 / (1 + jnp.exp(-h)), s * (1 - s)),
    "tanh": lambda h: (t := tanh(h), 1 - t * t),
}


def available() -> bool:
    """Whether this machine can run the kernel: a Hopper GPU, for its matrix unit, and JAX 0.11."""
    gpu = jax.default_backend() == "gpu" and jax.__version_info__ >= (0, 11)
    return gpu and getattr(jax.devices()[0], "compute_capability", None) == "9.0"


def applies(task: Discrimination, network: Network, members: int = 1) -> bool:
    """Whether the kernel serves an ensemble of this task and network."""
    return (
        type(network) is SingleNeuron  # one derived from it may have another readout
        and network.activation in RESPONSES
        and type(task) is Discrimination
        and task.loss in ("mse", "absolute")
        and task.outputs == 1
        and len(task.shape) == 1
        and task.size <= MAX_SITES
        and members <= MAX_MEMBERS
        and all(
            # A mean added after the map, as `Gaussian` may have one, is not sign symmetric.
            stimulus.gaussian_copula
            and stimulus.sign_symmetric
            and _as_numbers(stimulus.marginal())
            for stimulus in task.stimuli
        )
    )


def _block(
    first: Any,
    key: tuple[Any, Any],
    weights: jax.Array,
    numbers: Sequence[Any],
    target: Any,
    *,
    colored: Callable[[jax.Array], jax.Array],
    transform: Callable[..., jax.Array],
    activation: str,
    loss: str,
    count: int,
) -> tuple[jax.Array, jax.Array]:
    """Gradient, (sites,), and loss of each row, (ROWS,), over 2 × ROWS samples from row `first` on.

    `colored` multiplies white normals, (ROWS, sites), by the root of the covariance. Samples from
    `count` on add nothing.
    """
    shape = (ROWS, weights.shape[0])
    row = first + jax.lax.broadcasted_iota(jnp.int32, shape, 0)
    counter = (row * shape[1] + jax.lax.broadcasted_iota(jnp.int32, shape, 1)).astype(jnp.uint32)
    words = threefry(*key, counter, jnp.zeros_like(counter), ROUNDS)
    total: Any = 0.0
    cost: Any = 0.0
    for half, white in enumerate(normals(*words)):
        x = transform(numbers, colored(white))
        h = jnp.sum(x * jax.lax.broadcast_in_dim(weights, shape, (1,)), axis=1)
        output, slope = RESPONSES[activation](h)
        difference = output - target
        if loss == "mse":
            losses, pull = difference * difference, 2 * difference * slope
        else:
            losses, pull = jnp.abs(difference), jnp.sign(difference) * slope
        sample = 2 * (first + jax.lax.broadcasted_iota(jnp.int32, (ROWS,), 0)) + half
        cost += jnp.where(sample < count, losses, 0.0)
        total += jax.lax.broadcast_in_dim(jnp.where(sample < count, pull, 0.0), shape, (0,)) * x
    return jnp.sum(total, axis=0), cost


# Cached, so that classes that differ in numbers alone share one function: it is lowered once.
@functools.lru_cache(maxsize=64)
def _kernel(size: int, count: int, **setting: Any) -> Callable[..., Any]:
    """The sums over all samples as a Mosaic GPU kernel, whose columns come in sixteens."""
    from jax.experimental import pallas as pl

    # Untyped, since it changed between the versions of JAX that this package runs with.
    plgpu: Any = importlib.import_module("jax.experimental.pallas.mosaic_gpu")
    sites, columns, programs = padded(size, 8), padded(size, 16), -(-count // (2 * ROWS))

    def body(key, upper, lower, weights, numbers, target, gradient, loss, top, rest, barrier):
        program = jax.lax.axis_index("program")
        plgpu.copy_gmem_to_smem(upper, top, barrier)
        plgpu.copy_gmem_to_smem(lower, rest, barrier)
        plgpu.barrier_wait(barrier)

        def colored(white: jax.Array) -> jax.Array:
            if columns > sites:
                padding = jnp.zeros((ROWS, columns - sites), white.dtype)
                white = jnp.concatenate([white, padding], axis=1)
            rounded = white.astype(jnp.float16)

            def product(sums):
                plgpu.wgmma(sums, rounded, top.transpose((1, 0)))
                plgpu.wgmma(sums, rounded, rest.transpose((1, 0)))
                return sums[...]

            return pl.run_scoped(product, plgpu.ACC((ROWS, sites), jnp.float32))

        gradient[program], loss[program] = _block(
            program * ROWS,
            (key[0], key[1]),
            plgpu.load(weights, optimized=False),
            (numbers[0], numbers[1]),
            target[0],
            colored=colored,
            count=count,
            **setting,
        )

    root = plgpu.SMEM((sites, columns), jnp.float16)
    call = plgpu.kernel(
        body,
        out_type=(
            jax.ShapeDtypeStruct((programs, sites), jnp.float32),
            jax.ShapeDtypeStruct((programs, ROWS), jnp.float32),
        ),
        scratch_types=(root, root, plgpu.Barrier(num_arrivals=2)),
        grid=(programs,),
        grid_names=("program",),
        compiler_params=plgpu.CompilerParams(approx_math=True),
    )
    return jax.jit(call)


def _plain(size: int, count: int, **setting: Any) -> Callable[..., Any]:
    """The same sums without a kernel, on any device."""

    def call(key, upper, lower, weights, numbers, target):
        root = (upper.astype(jnp.float32) + lower.astype(jnp.float32))[:, : weights.size]

        def colored(white: jax.Array) -> jax.Array:
            rounded = jax.lax.reduce_precision(white, exponent_bits=5, mantissa_bits=10)
            return jnp.matmul(rounded, root, precision=jax.lax.Precision.HIGHEST)

        def block(first: Any) -> tuple[jax.Array, jax.Array]:
            pair, two = (key[0], key[1]), (numbers[0], numbers[1])
            options = {"colored": colored, "count": count, **setting}
            return _block(first, pair, weights, two, target[0], **options)

        return jax.lax.map(block, jnp.arange(0, -(-count // 2), ROWS))

    return call


def padded(size: int, to: int) -> int:
    """The smallest multiple of `to` that holds `size`."""
    return -(-size // to) * to


def gradient_of_class(
    task: Discrimination,
    network: SingleNeuron,
    weights: jax.Array,
    c: int,
    key: Any,
    count: int,
    kernel: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """Mean loss over `count` fresh samples of class c, and its gradient, (size,)."""
    stimulus: Any = task.stimuli[c]
    size = task.size
    sites, columns = padded(size, 8), padded(size, 16)
    spectrum = stimulus.kernel.spectra(task.shape, jnp.asarray(stimulus.xi, jnp.float32))[0]
    root = matrix(row_of(jnp.sqrt(spectrum))).astype(jnp.float32)
    root = jnp.pad(root, ((0, sites - size), (0, columns - size)))
    # Not by casts there and back, which XLA leaves out: the second matrix would be zero.
    upper = jax.lax.reduce_precision(root, exponent_bits=5, mantissa_bits=10)
    as_numbers = _as_numbers(stimulus.marginal())
    assert as_numbers is not None, "checked by `applies`"
    numbers, transform = as_numbers
    make = _kernel if kernel else _plain
    call = make(size, count, transform=transform, activation=network.activation, loss=task.loss)
    total, cost = call(
        jax.random.key_data(key),
        upper.astype(jnp.float16),
        (root - upper).astype(jnp.float16),
        jnp.pad(weights.astype(jnp.float32), (0, sites - size)),
        jnp.stack([jnp.asarray(value, jnp.float32) for value in numbers]),
        jnp.asarray(task.targets()[c], jnp.float32),
    )
    return jnp.sum(cost) / count, jnp.sum(total, axis=0)[:size] / count


def sampled(
    task: Discrimination,
    network: SingleNeuron,
    extra: None,
    params: Params,
    key: Any,
    counts: tuple[int, ...],
    kernel: bool = True,
) -> tuple[jax.Array, Params]:
    """The estimator: loss and gradient on fresh samples; without `kernel`, slowly on any device."""
    keys = jax.random.split(key, len(counts))
    weights = params["weights"][0]
    loss, pull = jax.value_and_grad(task.penalty)(params["weights"])
    for c, prior in enumerate(task.priors):
        cost, slope = gradient_of_class(task, network, weights, c, keys[c], counts[c], kernel)
        loss, pull = loss + prior * cost, pull + prior * slope[None, :]
    return loss, {"weights": pull}
