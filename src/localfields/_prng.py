"""Random numbers bit for bit as from JAX's default keys, in about half the time on a CPU.

JAX's default keys run the Threefry cipher in a loop that on a CPU goes through memory every four
rounds. The keys made here unroll the rounds, so that the cipher and what is made of its bits fuse
into one loop. They are ordinary JAX keys: every function of `jax.random` takes them but `poisson`,
for which see `call_with_key`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
NUM_COUNTERS = 2**32  # numbers from one key; a counter has 32 bits here


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


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    size = math.prod(shape)
    if size >= NUM_COUNTERS:
        raise ValueError(
            f"one key draws fewer than {NUM_COUNTERS} numbers, got a shape of {size}: split the key"
        )
    count = jax.lax.iota(jnp.uint32, size).reshape(shape)
    first, second = threefry(key[0], key[1], jnp.zeros_like(count), count)
    if bit_width == 64:
        return (first.astype(jnp.uint64) << 32) | second.astype(jnp.uint64)
    bits = first ^ second
    return bits if bit_width == 32 else bits.astype({8: jnp.uint8, 16: jnp.uint16}[bit_width])


_DEFAULT = jax.extend.random.threefry_prng_impl

KEYS = jax.extend.random.define_prng_impl(
    key_shape=(2,),
    seed=_DEFAULT.seed,
    split=_DEFAULT.split,
    fold_in=_DEFAULT.fold_in,
    random_bits=_random_bits,
    name="threefry_unrolled",
    tag="tfu",
)


KEYS_DTYPE = jax.random.key_dtype(KEYS)


def make_key(seed: int) -> jax.Array:
    """A key of this kind; it draws what `jax.random.key(seed)` draws.

    Example:
        >>> fast, default = (jax.random.bits(key, (3,)) for key in (make_key(7), jax.random.key(7)))
        >>> bool((fast == default).all())
        True
    """
    return jax.random.wrap_key_data(jnp.asarray(_words(seed)), impl=KEYS)


def _words(seed: int) -> np.ndarray:
    # The two words of a key, because without x64 `jax.random.key` would drop the upper one.
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


def call_with_key(function: Callable[[Any], Any], key: Any) -> Any:
    """`function(key)`, where the function may use all of `jax.random`.

    `jax.random.poisson` rejects every key that is not of JAX's own Threefry type, when it is
    traced. Then the function is traced again with such a key of the same words, which draws the
    same bits, so that only those who need it pay for the slower one.
    """
    try:
        return function(key)
    except NotImplementedError:
        if key.dtype != KEYS_DTYPE:
            raise
        return function(jax.random.wrap_key_data(jax.random.key_data(key), impl="threefry2x32"))


STREAM, START = 0, 1  # what a member's keys are for: its draws, its first weights


def member_keys(seed: int | tuple[int, ...], count: int, use: int) -> jax.Array:
    """One key a member. A member's key depends on the seed, its number and the use alone.

    With one seed a member, each is the first member of an ensemble of its own.
    """
    if isinstance(seed, tuple):
        words = jnp.asarray(np.stack([_words(value) for value in seed]))
        return _first_keys(jax.random.wrap_key_data(words, impl=KEYS), use)
    return _member_keys(make_key(seed), count, use)


@functools.partial(jax.jit, static_argnames="count")
def _member_keys(key: jax.Array, count: int, use: Any) -> jax.Array:
    base = jax.random.fold_in(key, use)
    return jax.vmap(lambda m: jax.random.fold_in(base, m))(jnp.arange(count))


@jax.jit
def _first_keys(keys: jax.Array, use: Any) -> jax.Array:
    return jax.vmap(lambda key: jax.random.fold_in(jax.random.fold_in(key, use), 0))(keys)
