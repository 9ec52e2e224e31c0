"""A key/value cache that writes each new token in place."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values of one layer, in a buffer with room for a whole action.

    ``DynamicLayer`` copies the whole cache for every token; on a CPU that is a third of the
    time of a small model's decoding step. Here a token costs its own copy only.

    Args:
        room: the most tokens that will be appended after the first ``update``.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.length = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [B, heads, T, D] keys and values; returns all of them so far, as views."""
        start, end = self.length, self.length + key_states.shape[-2]
        if not self.is_initialized:
            self.device = key_states.device
            self._key_buffer = _with_room(key_states, end + self.room)
            self._value_buffer = _with_room(value_states, end + self.room)
            self.is_initialized = True
        self._key_buffer[..., start:end, :] = key_states
        self._value_buffer[..., start:end, :] = value_states
        self.length = end
        return self._show()

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep, repeat or reorder rows of the batch."""
        self._key_buffer = self._key_buffer[indices]
        self._value_buffer = self._value_buffer[indices]
        self._show()

    def _show(self) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys = self._key_buffer[..., : self.length, :]
        self.values = self._value_buffer[..., : self.length, :]
        return self.keys, self.values


def cache_with_room(config: Any, room: int) -> DynamicCache:
    """An empty cache for a model's config, with in-place layers wherever attention is full.

    Args:
        config: of the model. Sliding-window and recurrent layers keep their own kind of cache.
        room: the most tokens that will be appended after the prompt.
    """
    cache = DynamicCache(config=config)
    cache.layers = [
        RoomyLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache


def _with_room(states: torch.Tensor, length: int) -> torch.Tensor:
    return states.new_zeros((*states.shape[:-2], length, states.shape[-1]))
