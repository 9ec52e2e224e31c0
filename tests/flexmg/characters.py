"""A tokenizer whose tokens are characters, for tests that need no model."""

from __future__ import annotations

from collections.abc import Sequence


class Characters:
    """Token k is the k-th character of an alphabet; the last id is EOS."""

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self.vocab_size = len(alphabet) + 1
        self.eos_token_id = len(alphabet)

    def encode(self, text: str) -> list[int]:
        return [self.alphabet.index(character) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.alphabet[i] for i in ids)


ALPHABET = "".join(map(chr, range(32, 127))) + "\n"
