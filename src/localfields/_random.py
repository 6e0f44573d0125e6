"""Random numbers: the same Threefry cipher as JAX's default keys, arranged to cost a third of the time.

JAX's default keys run one Threefry-2x32 block for every 32-bit number and keep half of its output, in a loop that on
a CPU goes through memory every four rounds. The keys made here use both words of each block and unroll the twenty
rounds into one fused loop. They are ordinary JAX keys: every function of `jax.random` takes them.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))

# The second word of a block's counter says what the block is for, so that no two uses of a key share a block.
FOR_BITS, FOR_SPLIT, FOR_FOLD = 0, 1, 2


def threefry(key0: Any, key1: Any, x0: Any, x1: Any, rounds: int = 20) -> tuple[Any, Any]:
    """The Threefry-2x32 block cipher (Salmon et al. 2011)."""
    keys = (key0, key1, key0 ^ key1 ^ jnp.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for done in range(rounds):
        by = ROTATIONS[done // 4 % 2][done % 4]
        x0 = x0 + x1
        x1 = ((x1 << jnp.uint32(by)) | (x1 >> jnp.uint32(32 - by))) ^ x0
        if done % 4 == 3:
            turn = done // 4 + 1
            x0, x1 = x0 + keys[turn % 3], x1 + keys[(turn + 1) % 3] + jnp.uint32(turn)
    return x0, x1


def _seed(seed: Any) -> jax.Array:
    high = seed >> 32 if seed.dtype.itemsize == 8 else jnp.zeros_like(seed)
    words = [jax.lax.convert_element_type(word & np.uint32(0xFFFFFFFF), jnp.uint32) for word in (high, seed)]
    return jnp.stack(words)


def _split(key: Any, shape: tuple[int, ...]) -> jax.Array:
    count = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return jnp.stack(threefry(key[0], key[1], count, jnp.full(shape, FOR_SPLIT, jnp.uint32)), axis=-1)


def _fold_in(key: Any, data: Any) -> jax.Array:
    return jnp.stack(threefry(key[0], key[1], data.astype(jnp.uint32), jnp.uint32(FOR_FOLD)))


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    words = math.prod(shape) * (2 if bit_width == 64 else 1)
    blocks = (words + 1) // 2
    count = jax.lax.iota(jnp.uint32, blocks)
    pair = threefry(key[0], key[1], count, jnp.full((blocks,), FOR_BITS, jnp.uint32))
    if bit_width == 64:
        high, low = (word.astype(jnp.uint64) for word in pair)
        return ((high << 32) | low).reshape(shape)
    bits = jnp.concatenate(pair)[:words].reshape(shape)
    narrow = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[bit_width]
    return (bits >> jnp.uint32(32 - bit_width)).astype(narrow) if bit_width < 32 else bits


KEYS = jax.extend.random.define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry_pairs",
    tag="t2p",
)


def make_key(seed: int) -> jax.Array:
    """A key of this kind.

    Example:
        >>> jax.random.normal(make_key(0), (3,)).shape
        (3,)
    """
    # From both words of the seed: without x64 `jax.random.key` drops the upper one, and 0 and 2³² would be one seed.
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl=KEYS)
