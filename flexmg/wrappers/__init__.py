"""Wrappers around a Flexible Markov Game.

``TokenLevel`` (every token an action), ``SingleAgent`` (a ``gymnasium.Env`` for one role),
``RewardMode`` (another reward over the same environment), ``RecordEpisodes`` (JSONL).
"""

from .record import RecordEpisodes, RecordError
from .reward_mode import RewardMode
from .single_agent import SingleAgent
from .token_level import Tokenizer, TokenLevel

__all__ = [
    "RecordEpisodes",
    "RecordError",
    "RewardMode",
    "SingleAgent",
    "TokenLevel",
    "Tokenizer",
]
