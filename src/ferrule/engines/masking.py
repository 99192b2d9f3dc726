"""Finds all legal ids of a step by llguidance, in microseconds for any size of vocabulary.

Comes with the extra `ferrule[local]`; imported when an engine is first given a constraint.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ferrule.dialects.grammar import Grammar
from ferrule.engines.closing import CallCloser
from ferrule.engines.constraints import TokenMask, VocabularyIndex
from ferrule.engines.lark import write_lark
from ferrule.errors import EngineError

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class _TokenBytes:
    """A vocabulary as llguidance takes it. Behind its ids is one more, which stands for all stop ids."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, index: VocabularyIndex) -> None:
        named = {token: name.encode() for name, token in index.control.items()}
        texts = {**index.texts, **named}
        self.tokens = [texts.get(token, b"") for token in range(index.size)] + [b"<stop>"]
        self.eos_token_id = index.size
        self.special_token_ids = [*named, index.size]

    def __call__(self, text: bytes | str) -> Sequence[int]:
        """Never called: grammars are followed without tokenizing what they force."""
        raise NotImplementedError


def make_llguidance_tokenizer(index: VocabularyIndex) -> LLTokenizer:
    """The vocabulary as llguidance keeps it: once for an engine. Raises `EngineError` if it isn't installed."""
    try:
        from llguidance import LLTokenizer
    except ImportError as error:
        raise EngineError(
            "constraint: constraining a local model needs llguidance; install it with: pip install 'ferrule[local]'"
        ) from error
    return LLTokenizer(_TokenBytes(index))


class MaskedConstraint:
    """A `TokenConstraint` of one generation. With a `closer`, a call is closed before its budget ends.

    Raises `EngineError` for a grammar that llguidance can't follow.
    """

    def __init__(
        self,
        grammar: Grammar,
        index: VocabularyIndex,
        tokenizer: LLTokenizer,
        stop_ids: Collection[int],
        closer: CallCloser | None,
    ) -> None:
        from llguidance import LLMatcher

        self._matcher = LLMatcher(tokenizer, write_lark(grammar, index.control), log_level=0)
        self._check()
        self._size = (index.size + 7) // 8
        # In words of 32 bits, with one for the id that stands for the stop ids.
        self._words = np.zeros(index.size // 32 + 1, np.int32)
        self._bits = self._words.view(np.uint8)
        self._mask = self._bits[: self._size]
        self._address, self._length = self._words.ctypes.data, self._words.nbytes
        self._end = index.size // 8, 1 << index.size % 8
        self._stop_ids = frozenset(stop_ids)
        self._stop_bits = [(stop // 8, 1 << stop % 8) for stop in stop_ids if stop < index.size]
        self._closer = closer

    def mask(self) -> TokenMask:
        """See `TokenConstraint`."""
        self._matcher.unsafe_compute_mask_ptr(self._address, self._length)
        self._check()
        at, end = self._end
        bits = int(self._bits[at])
        if bits & end:
            self._bits[at] = bits - end
            for stop, bit in self._stop_bits:
                self._bits[stop] |= bit
        return self._mask

    def advance(self, token: int) -> int:
        """See `TokenConstraint`."""
        if self._closer is not None:
            token = self._closer.choose(token)
        if token not in self._stop_ids and not self._matcher.consume_token(token):
            self._check()
        return token

    def _check(self) -> None:
        if self._matcher.is_error():
            raise EngineError(f"constraint: llguidance can't follow the grammar: {self._matcher.get_error()}")
