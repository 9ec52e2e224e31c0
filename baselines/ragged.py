"""Ragged arrays laid end to end: row k has ``lengths[k]`` entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def places(rows: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of the entries of some rows, in the order of ``rows``, among those of all rows."""
    starts = np.cumsum(lengths) - lengths
    own = lengths[rows]
    within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
    return np.repeat(starts[rows], own) + within
