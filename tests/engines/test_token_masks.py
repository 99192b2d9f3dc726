"""llguidance's masks are what following the grammar gives, and every constrained message ends within its budget."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

from ferrule.dialects.grammar import (
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    MarkerText,
    Repetition,
    TextUntil,
)
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.constraints import GrammarMatcher, TokenConstraint, VocabularyIndex
from ferrule.errors import EngineError

STOP = 258


class Tokens:
    """Bytes, control tokens, and tokens that end within characters and closers."""

    longer = (b"ab", b"abc", b"b)", b"\xc3", b"12", b"\xa9a", "é".encode(), b"</", b"a>", b"aba", b"ba", b"))")
    control: ClassVar[Mapping[str, int]] = {"<end>": 256, "<a>": 257, "<stop>": STOP}
    vocabulary_size = 259 + len(longer)

    def decode_token(self, token: int) -> bytes:
        if token >= 259:
            return self.longer[token - 259]
        return bytes([token]) if token < 256 else tuple(self.control)[token - 256].encode()


INDEX = VocabularyIndex(Tokens())
LEAVES: tuple[Grammar, ...] = (
    *map(LiteralText, ("a", "ab", "abc", ")", "b)", "é", "aé", "12", "</a>")),
    *map(CharacterSet, ("ab", "é日", "12", ")")),
    *(CharacterSet(one, is_excluded=True) for one in ("a", "éb", "")),
    *map(TextUntil, (("</a>",), ("aba",), ("b)", "aa"), ("b</", "</", "aba"), ("é",), ())),
    *map(ControlToken, ("<end>", "<a>")),
    *map(MarkerText, ("x<end>y", "<a>")),
)


def make_grammar(rng: random.Random, depth: int = 3) -> Grammar:
    drawn = rng.random()
    if not depth or drawn < 0.35:
        return rng.choice(LEAVES)
    if drawn < 0.6:
        return GrammarSequence(tuple(make_grammar(rng, depth - 1) for _ in range(rng.randint(1, 4))))
    if drawn < 0.8:
        return GrammarChoice(tuple(make_grammar(rng, depth - 1) for _ in range(rng.randint(1, 3))))
    item = make_grammar(rng, depth - 1)
    if not isinstance(item, LiteralText | CharacterSet | ControlToken):
        item = GrammarSequence((LiteralText("b"), item))
    least = rng.randint(0, 2)
    return Repetition(item, least, rng.choice((None, least + 1, least + 2)))


def list_legal(constraint: TokenConstraint) -> list[int]:
    return np.flatnonzero(np.unpackbits(constraint.mask(), bitorder="little")).tolist()


def choose(rng: random.Random, legal: list[int]) -> int:
    """An id that goes on in a grammar of these leaves; the stop id only if there is no other."""
    others = [token for token in legal if token != STOP] or legal
    likely = [token for token in others if token >= 256 or token in b"ab)12</>x"]
    return rng.choice(likely or others) if rng.random() < 0.9 else rng.choice(others)


def follow(seed: int, compiler: ConstraintCompiler) -> None:
    rng = random.Random(seed)
    grammar = make_grammar(rng)
    masked, matcher = compiler.compile(grammar, (STOP,), 10**6), GrammarMatcher(grammar, INDEX, (STOP,))
    written: list[int] = []
    for _ in range(12):
        legal = list_legal(matcher)
        assert list_legal(masked) == legal, (grammar, written)
        token = choose(rng, legal)
        if token == STOP:
            return
        assert masked.advance(token) == matcher.advance(token) == token
        written.append(token)


def end(seed: int, compiler: ConstraintCompiler) -> int:
    """Write to the end in the least budget and in larger ones; returns how many ids were put there to end in time."""
    rng = random.Random(seed)
    grammar, replaced = make_grammar(rng), 0
    with pytest.raises(EngineError, match=r"leaves 0$") as refused:
        compiler.compile(grammar, (STOP,), 0)
    least = int(str(refused.value).split(" takes ")[1].split()[0])
    for budget in (least, least + 1, least + rng.randint(2, 14)):
        masked, matcher = compiler.compile(grammar, (STOP,), budget), GrammarMatcher(grammar, INDEX, (STOP,))
        for _ in range(budget):
            token = choose(rng, list_legal(masked))
            taken = masked.advance(token)
            assert matcher.allows(taken), (grammar, budget)
            replaced += taken != token
            if taken == STOP:
                break
            matcher.advance(taken)
        else:
            raise AssertionError((grammar, budget))
    return replaced


def test_masks_have_the_ids_that_the_grammar_allows() -> None:
    compiler = ConstraintCompiler(Tokens())
    for seed in range(30):
        follow(seed, compiler)


@pytest.mark.slow
def test_masks_of_many_grammars_have_the_ids_that_they_allow() -> None:
    compiler = ConstraintCompiler(Tokens())
    for seed in range(30, 2000):
        follow(seed, compiler)


def test_every_text_ends_within_its_budget() -> None:
    compiler = ConstraintCompiler(Tokens())
    assert sum(end(seed, compiler) for seed in range(150)) > 150


@pytest.mark.slow
def test_every_text_of_many_grammars_ends_within_its_budget() -> None:
    compiler = ConstraintCompiler(Tokens())
    assert sum(end(seed, compiler) for seed in range(150, 10_000)) > 10_000


def test_a_text_that_may_be_cut_is_not_ended() -> None:
    closed = GrammarSequence((LiteralText("<"), Repetition(CharacterSet("b")), LiteralText(">>>>")))
    for may_be_cut, last in ((True, ord("a")), (False, STOP)):
        text = TextUntil(("<",), may_be_cut)
        grammar = GrammarChoice((text, GrammarSequence((text, closed))))
        masked = ConstraintCompiler(Tokens()).compile(grammar, (STOP,), 4)
        # A call that wouldn't end any more isn't begun, either.
        assert masked.advance(ord("<")) == STOP
        masked = ConstraintCompiler(Tokens()).compile(grammar, (STOP,), 4)
        masked.mask()
        assert [masked.advance(ord("a")) for _ in range(4)][-1] == last


def test_what_cannot_be_compiled_is_refused_by_name() -> None:
    compiler = ConstraintCompiler(Tokens())
    with pytest.raises(EngineError, match="constraint: the tokenizer has no control token '<b>'"):
        compiler.compile(ControlToken("<b>"), (STOP,), 100)
    with pytest.raises(EngineError, match="constraint: llguidance can't follow the grammar: "):
        compiler.compile(GrammarChoice(()), (STOP,), 100)
    with pytest.raises(EngineError, match=r"constraint: its shortest message takes 13 tokens, and .* leaves 12"):
        compiler.compile(LiteralText("x" * 12), (STOP,), 12)
