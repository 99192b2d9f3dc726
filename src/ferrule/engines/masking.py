"""Finds all legal ids of a step by llguidance, in microseconds for any size of vocabulary.

Comes with the extra `ferrule[local]`; imported when an engine is first given a constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ferrule.dialects.grammar import Grammar
from ferrule.engines.closing import CallCloser, ClosingTexts, TokenCounter
from ferrule.engines.constraints import TokenMask, VocabularyIndex
from ferrule.engines.lark import write_lark
from ferrule.engines.places import resolve_markers
from ferrule.errors import EngineError

if TYPE_CHECKING:
    from llguidance import LLMatcher

_KEPT_GRAMMARS = 16


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


class MaskCompiler:
    """Compiles the grammars of one vocabulary, and keeps the last ones. Raises `EngineError` without llguidance."""

    def __init__(self, index: VocabularyIndex) -> None:
        try:
            from llguidance import LLTokenizer
        except ImportError as error:
            raise EngineError(
                "constraint: constraining this model needs llguidance; install it with: pip install 'ferrule[local]'"
            ) from error
        self._index = index
        self._tokenizer = LLTokenizer(_TokenBytes(index))
        self._counter = TokenCounter(index)
        # By the identity of a grammar, which is kept with it: comparing grammars would take longer than compiling them.
        self._compiled: dict[int, _CompiledGrammar] = {}

    def compile(self, grammar: Grammar, stop_ids: Sequence[int], budget: int) -> MaskedConstraint:
        """See `ConstraintCompiler.compile`."""
        known = self._compiled.pop(id(grammar), None)
        if known is None:
            known = self._compile(grammar)
        self._compiled[id(grammar)] = known
        if len(self._compiled) > _KEPT_GRAMMARS:
            del self._compiled[next(iter(self._compiled))]
        closer = CallCloser(known.texts, stop_ids, budget)
        return MaskedConstraint(known.matcher.deep_copy(), self._index.size, stop_ids, closer)

    def _compile(self, grammar: Grammar) -> _CompiledGrammar:
        from llguidance import LLMatcher

        plain = resolve_markers(grammar, self._index.control)
        matcher = LLMatcher(self._tokenizer, write_lark(plain, self._index.control), log_level=0)
        _check(matcher)
        return _CompiledGrammar(grammar, matcher, ClosingTexts(plain, self._index, self._counter))


@dataclass(frozen=True, slots=True)
class _CompiledGrammar:
    grammar: Grammar
    matcher: LLMatcher
    texts: ClosingTexts


class MaskedConstraint:
    """The `TokenConstraint` of one generation, with a vocabulary of `size` ids.

    `closer` closes a call before its budget ends.
    """

    def __init__(self, matcher: LLMatcher, size: int, stop_ids: Sequence[int], closer: CallCloser) -> None:
        self._matcher = matcher
        # With a bit for the id that stands for the stop ids, in words of 32 bits for llguidance, padded to 64.
        self._mask = np.zeros(8 * (size // 64 + 1), np.uint8)
        self._address, self._length = self._mask.ctypes.data, 4 * (size // 32 + 1)
        self._end = size // 8, 1 << size % 8
        self._stop_ids = frozenset(stop_ids)
        self._stop_bits = [(stop // 8, 1 << stop % 8) for stop in stop_ids if stop < size]
        self._closer = closer

    def mask(self) -> TokenMask:
        """See `TokenConstraint`."""
        self._matcher.unsafe_compute_mask_ptr(self._address, self._length)
        _check(self._matcher)
        at, end = self._end
        bits = int(self._mask[at])
        if bits & end:
            self._mask[at] = bits - end
            for stop, bit in self._stop_bits:
                self._mask[stop] |= bit
        return self._mask

    def advance(self, token: int) -> int:
        """See `TokenConstraint`."""
        token = self._closer.choose(token)
        if token not in self._stop_ids and not self._matcher.consume_token(token):
            _check(self._matcher)
        return token


def _check(matcher: LLMatcher) -> None:
    """Raise `EngineError` if the matcher failed: its errors are states."""
    if matcher.is_error():
        reason = matcher.get_error().strip().splitlines()
        raise EngineError(f"constraint: llguidance can't follow the grammar: {reason[0] if reason else 'unknown'}")
