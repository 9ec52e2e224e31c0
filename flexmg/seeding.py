"""Randomness by key: every stream is named, none is derived by addition or a global."""

from __future__ import annotations

import hashlib
import struct

import numpy as np

# Part of every key: a change that alters which problems a seed means bumps it.
SUITE_VERSION = 0


def key_of(*parts: str | int) -> tuple[int, ...]:
    """The named stream's key as eight 32-bit words (SHA-256), to seed any generator with."""
    return struct.unpack("<8I", _digest(parts))


def stream(*parts: str | int) -> np.random.Generator:
    """An independent generator for the named stream (suite version, parts ...).

    ``("train", 1)`` and ``("test", 1)``, or seeds 0 and 1, share nothing, and a key means
    the same in every process. Numbers may be of any size and sign.
    """
    return np.random.default_rng(np.random.SeedSequence(key_of(*parts)))


def draw(bound: int, *parts: str | int) -> int:
    """A uniform integer in [0, bound) from the named stream.

    One SHA-256 instead of a generator: many times cheaper than :func:`stream` where a
    single number is wanted. The bias is below bound / 2**128.
    """
    return int.from_bytes(_digest(parts)[:16], "little") % bound


def draws(count: int, *parts: str | int) -> tuple[int, ...]:
    """Uniform 64-bit integers from the named stream (SHAKE-256 of the key).

    For a handful of numbers, which a generator would take longer to be made than to draw.
    """
    return struct.unpack(f"<{count}Q", hashlib.shake_256(_key(parts)).digest(8 * count))


def _digest(parts: tuple[str | int, ...]) -> bytes:
    return hashlib.sha256(_key(parts)).digest()


def _key(parts: tuple[str | int, ...]) -> bytes:
    # repr tells 1 from "1" and ("a", "b") from ("a,b",), and is equal in every process.
    return repr((SUITE_VERSION, *parts)).encode()
