"""One GPU kernel that draws, colors, maps and differentiates: a batch that never sees memory.

On a GPU a step of `independent` training is bound by moving draws through memory: normals are written, read to be
colored, written, read for the response and read again for the gradient. Here a block of rows lives in registers from
its random bits to its share of the gradient. It serves one neuron on stimuli that are an elementwise function of a
stationary Gaussian on a ring; everything else takes the general path, with the same expectation.

The product with the root of the covariance runs on tensor cores: the root as a sum of two float16 matrices, which
keeps 22 bits, and the white normals with the 11 bits of float16, which changes their variance by less than 1e-7.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from .._prng import threefry
from ..lattice import matrix, row_of
from ..marginals import Algebraic, ErfNormal, Marginal, Normal
from ..networks import Network, SingleNeuron
from ..networks.base import Params
from ..stimuli.gaussian import GaussianCopula
from ..tasks import Discrimination

ROWS = 128  # cipher blocks a column and pass: twice as many draws
FEWER_ROWS = 64  # for a law that needs many registers: they are what bounds it
LOOPS = 1  # passes of one program
ROUNDS = 13  # of the cipher: the fewest its authors call safe; its cost is the floor
SMALLEST = 16  # side of a block of a tensor-core product
LARGEST = 128  # sites


# Coefficients, highest power first: log2 erfc(x)/x on 0 < x < 4 (fitted: erf to 1.6e-7); the series of erf(x)/x,
# sin(πx)/x and cos(πx) in x².
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
# log2 erfc(x)/x on 0.25 < x < 4.1, fitted for the relative error of erfc: 3e-6, most of it rounding.
ERFC = (-3.89097436936936e-07, 9.237749509338755e-06, -9.333564230473712e-05, 0.0005017847870476544)
ERFC += (-0.001275592832826078, -0.0015614458825439215, 0.029318515211343765, -0.14918415248394012)
ERFC += (-0.9181981682777405, -1.6279330253601074)
LOG = tuple(1 / n for n in range(5, 0, -1))  # −log(1 − x)/x
EXP = tuple(1 / math.factorial(n) for n in range(5, 0, -1))  # (eˣ − 1)/x
COSINE = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(6, -1, -1))


def _polynomial(coefficients: tuple[float, ...], x: jax.Array) -> jax.Array:
    total = jnp.float32(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + jnp.float32(c)
    return total


def erf(x: jax.Array) -> jax.Array:
    """The error function in float32, without branches or divisions; kernels cannot call the library's."""
    size = jnp.minimum(jnp.abs(x), 4.0)
    far = 1 - jnp.exp2(size * _polynomial(ERF_FAR, size))
    return jnp.where(size < 0.25, x * _polynomial(ERF_NEAR, x * x), jnp.where(x < 0, -far, far))


def algebraic(k: jax.Array, z: jax.Array) -> jax.Array:
    """v(1 − v^k)^(−1/k) with v = P(|Z| < |z|) and the sign of z, in float32; beyond |z| = 5.8 as there.

    Small differences from 1 are taken by their series, so that the tail keeps its digits.
    """
    size = jnp.minimum(jnp.abs(z) * jnp.float32(math.sqrt(0.5)), 4.1)
    outside = jnp.exp2(size * _polynomial(ERFC, size))
    v = jnp.where(size < 0.25, size * _polynomial(ERF_NEAR, size * size), 1 - outside)
    log = jnp.where(outside < 0.05, -outside * _polynomial(LOG, outside), jnp.log(v))
    power = k * log
    rest = jnp.where(power > -0.1, -power * _polynomial(EXP, power), 1 - jnp.exp(power))
    value = v * jnp.exp(jnp.log(rest) * (-1 / k))
    return jnp.where(z < 0, -value, value)


def normals(first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normals from two words of random bits (Box and Muller): |z| up to 5.8."""
    u = (first >> jnp.uint32(8)).astype(jnp.int32).astype(jnp.float32) * jnp.float32(
        2.0**-24
    ) + jnp.float32(2.0**-25)
    square = jnp.maximum(jnp.float32(-2) * jnp.log(u), jnp.float32(1e-12))
    radius = square * jax.lax.rsqrt(square)  # cheaper than a square root, and as good
    # The angle is πx with x in (−½, ½), and a sign for the other half of the circle from a bit of its own.
    x = (second >> jnp.uint32(9)).astype(jnp.int32).astype(jnp.float32) * jnp.float32(
        2.0**-23
    ) - jnp.float32(0.5 - 2.0**-24)
    radius = jnp.where((second & jnp.uint32(1)) == 0, radius, -radius)
    return radius * _polynomial(COSINE, x * x), radius * x * _polynomial(SINE, x * x)


def _as_numbers(law: Marginal) -> tuple[list[Any], Callable[..., jax.Array], int] | None:
    """A law as numbers, a function (numbers, z) → x that a kernel can run, and its rows; or None."""
    if isinstance(law, Normal):
        return [law.scale, 0.0], lambda numbers, z: numbers[0] * z, ROWS
    if isinstance(law, ErfNormal):
        return (
            [law.gain, law.scale / law.deviation()],
            lambda numbers, z: numbers[1] * erf(numbers[0] * z),
            ROWS,
        )
    if isinstance(law, Algebraic):
        numbers = [law.k, law.scale / law.deviation()]
        return numbers, lambda numbers, z: numbers[1] * algebraic(numbers[0], z), FEWER_ROWS
    return None


def applies(task: Discrimination, network: Network) -> bool:
    """Whether the kernel serves this task and network."""
    known = ("relu", "identity", "sigmoid", "tanh")
    return (
        isinstance(network, SingleNeuron)
        and network.activation in known
        and task.loss in ("mse", "absolute")
        and task.outputs == 1
        and len(task.shape) == 1
        and task.size <= LARGEST
        and all(
            isinstance(s, GaussianCopula) and s.sign_symmetric and _as_numbers(s.marginal())
            for s in task.stimuli
        )
    )


def pieces(size: int) -> list[tuple[int, int]]:
    """Start and width of blocks that cover a ring: powers of two of at least 16, as tensor cores want them."""
    found, start, left = [], 0, -(-size // SMALLEST) * SMALLEST
    while left:
        width = 1 << (left.bit_length() - 1)
        found.append((start, width))
        start, left = start + width, left - width
    return found


def _kernel(
    key,
    upper,
    lower,
    weights,
    numbers,
    target,
    gradient,
    loss,
    *,
    count,
    blocks,
    law,
    respond,
    rows,
):
    """Rows of one program: `LOOPS` passes of 2 × `rows` draws."""
    program = pl.program_id(0)
    values = [numbers[0], numbers[1]]
    wanted = target[0]
    columns = sum(width for _, width in blocks)
    fields = [weights[pl.ds(at, width)] for at, width in blocks]
    product = functools.partial(jnp.dot, preferred_element_type=jnp.float32)

    def colored(start: Any) -> list[list[jax.Array]]:
        z = [[jnp.zeros((rows, width), jnp.float32) for _, width in blocks] for _ in range(2)]
        for at, width in blocks:
            row = jax.lax.broadcasted_iota(jnp.int32, (rows, width), 0) + start
            counter = (
                row * columns + jax.lax.broadcasted_iota(jnp.int32, (rows, width), 1) + at
            ).astype(jnp.uint32)
            words = threefry(key[0], key[1], counter, jnp.zeros_like(counter), ROUNDS)
            for half, white in enumerate(normals(*words)):
                rounded = white.astype(jnp.float16)
                for b, (to, wide) in enumerate(blocks):
                    top, rest = (
                        upper[pl.ds(at, width), pl.ds(to, wide)],
                        lower[pl.ds(at, width), pl.ds(to, wide)],
                    )
                    z[half][b] += product(rounded, top) + product(rounded, rest)
        return z

    def one_pass(turn: Any, carry: Any) -> Any:
        totals, cost = carry
        start = (program * LOOPS + turn) * rows
        for half, z in enumerate(colored(start)):
            draw = 2 * (start + jax.lax.broadcasted_iota(jnp.int32, (rows, 1), 0)) + half
            real = (draw < count).astype(jnp.float32)
            x = [law(values, part) for part in z]
            h = sum(
                jnp.sum(part * w[None, :], axis=1, keepdims=True)
                for part, w in zip(x, fields, strict=True)
            )
            each, slope = respond(h, wanted)
            totals = [
                total + jnp.sum(slope * real * part, axis=0)
                for total, part in zip(totals, x, strict=True)
            ]
            cost += jnp.sum(each * real)
        return totals, cost

    totals, cost = [jnp.zeros((width,), jnp.float32) for _, width in blocks], jnp.float32(0)
    totals, cost = jax.lax.fori_loop(0, LOOPS, one_pass, (totals, cost))
    for (at, width), total in zip(blocks, totals, strict=True):
        gradient[0, pl.ds(at, width)] = total
    loss[0] = cost


def gradient_of_class(
    task: Discrimination,
    network: Network,
    weights: jax.Array,
    c: int,
    key: Any,
    count: int,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Mean loss over `count` fresh draws of class c, and its gradient, (size,)."""
    stimulus: Any = task.stimuli[c]
    size = task.size
    blocks = pieces(size)
    columns = sum(width for _, width in blocks)
    spectrum = stimulus.kernel.spectra(task.shape, jnp.asarray(stimulus.xi, jnp.float32))[0]
    root = matrix(row_of(jnp.sqrt(spectrum))).astype(jnp.float32)
    root = jnp.pad(root, (0, columns - size))
    upper = root.astype(jnp.float16)
    lower = (root - upper.astype(jnp.float32)).astype(jnp.float16)
    made = _as_numbers(stimulus.marginal())
    assert made is not None, "checked by `applies`"
    numbers, law, rows = made
    passes = -(-count // (2 * rows))
    programs = -(-passes // LOOPS)

    def respond(h: jax.Array, wanted: Any) -> tuple[jax.Array, jax.Array]:
        def cost(h: jax.Array) -> jax.Array:
            # Elementwise in h, so that the gradient of the sum is the slope of each.
            difference = network.readout({}, h) - wanted
            return difference**2 if task.loss == "mse" else jnp.abs(difference)

        each, pull = jax.vjp(cost, h)
        return each, pull(jnp.ones_like(each))[0]

    def whole(*shape: int) -> pl.BlockSpec:
        return pl.BlockSpec(shape, lambda program: (0,) * len(shape))

    def part(*shape: int) -> pl.BlockSpec:
        return pl.BlockSpec(shape, lambda program: (program, *(0,) * (len(shape) - 1)))

    total, cost = pl.pallas_call(
        functools.partial(_kernel, count=count, blocks=blocks, law=law, respond=respond, rows=rows),
        out_shape=(
            jax.ShapeDtypeStruct((programs, columns), jnp.float32),
            jax.ShapeDtypeStruct((programs,), jnp.float32),
        ),
        grid=(programs,),
        in_specs=[
            whole(2),
            whole(columns, columns),
            whole(columns, columns),
            whole(columns),
            whole(2),
            whole(1),
        ],
        out_specs=(part(1, columns), part(1)),
        interpret=interpret,
        **({} if interpret else _compiler()),
    )(
        jax.random.key_data(key),
        upper,
        lower,
        jnp.pad(weights.astype(jnp.float32), (0, columns - size)),
        jnp.stack([jnp.asarray(value, jnp.float32) for value in numbers]),
        jnp.asarray(task.targets()[c], jnp.float32),
    )
    return jnp.sum(cost) / count, jnp.sum(total, axis=0)[:size] / count


def _compiler() -> dict[str, Any]:
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=8, num_stages=1)}


def sampled(
    task: Discrimination,
    network: Network,
    extra: None,
    params: Params,
    key: Any,
    counts: tuple[int, ...],
    interpret: bool = False,
) -> tuple[jax.Array, Params]:
    """The estimator: loss and gradient on fresh draws of every class."""
    keys = jax.random.split(key, len(counts))
    weights = params["weights"][0]
    loss, pull = jax.value_and_grad(task.penalty)(params["weights"])
    for c, prior in enumerate(task.priors):
        cost, slope = gradient_of_class(task, network, weights, c, keys[c], counts[c], interpret)
        loss, pull = loss + prior * cost, pull + prior * slope[None, :]
    return loss, {"weights": pull}
