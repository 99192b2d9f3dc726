"""What a grammar lets through, and that sampling keeps to it without changing how likely the rest is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from engine_checkpoints import SMALL, random_tensors

from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    Repetition,
)
from ferrule.engines import NumpyEngine, Sampling
from ferrule.engines.config import read_config
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from ferrule.engines.sampling import TokenSampler, sample_ids
from ferrule.errors import EngineError, TokenizerError

END = 256


@dataclass
class Tokens:
    """Single bytes, one control token, and tokens of several bytes."""

    longer: tuple[bytes, ...] = (b"ab", b"abc", b"b)", b"\xc3", b"12")
    control: Mapping[str, int] = field(default_factory=lambda: {"<end>": END})

    @property
    def vocabulary_size(self) -> int:
        return 257 + len(self.longer)

    def decode_token(self, token: int) -> bytes:
        if token == END:
            return b"<end>"
        return bytes([token]) if token < 256 else self.longer[token - 257]


def find_legal(grammar: Grammar, text: bytes) -> set[bytes]:
    """The texts of the tokens that may follow a text; END is the control token."""
    tokens = Tokens()
    matcher = GrammarMatcher(grammar, VocabularyIndex(tokens))
    for byte in text:
        assert matcher.allows(byte)
        matcher.advance(byte)
    legal = {tokens.decode_token(token) for token in range(257, tokens.vocabulary_size) if matcher.allows(token)}
    legal |= {bytes([token]) for token in range(256) if matcher.allows(token)}
    return legal | ({b"END"} if matcher.allows(END) else set())


ANYTHING = Repetition(CharacterSet("", is_excluded=True))
CALL = GrammarSequence((
    GrammarChoice((LiteralText("f("), LiteralText("fab("))),
    GrammarChoice((LiteralText("a"), NOTHING)),
    Repetition(CharacterSet("b")),
    LiteralText(")"),
    ControlToken("<end>"),
))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        (b"", {b"f"}),
        (b"f", {b"(", b"a", b"ab"}),
        (b"fab", {b"("}),
        (b"f(", {b"a", b"b", b")", b"ab", b"b)"}),
        (b"f(ab", {b"b", b")", b"b)"}),
        (b"f(ab)", {b"END"}),
    ],
)
def test_legal_tokens_continue_a_text_of_the_grammar(text: bytes, legal: set[bytes]) -> None:
    assert find_legal(CALL, text) == legal


def test_the_text_of_a_control_token_is_only_text() -> None:
    grammar = GrammarSequence((ANYTHING, ControlToken("<end>")))
    assert b"END" in find_legal(grammar, b"<end>")
    assert find_legal(GrammarSequence((ControlToken("<end>"),)), b"") == {b"END"}
    assert find_legal(GrammarSequence((LiteralText("<end>"), ControlToken("<end>"))), b"") == {b"<"}


def test_a_character_may_come_in_several_tokens() -> None:
    assert find_legal(GrammarSequence((LiteralText("é"), LiteralText("."))), b"") == {b"\xc3"}
    assert find_legal(LiteralText("é."), "é".encode()) == {b"."}
    unquoted = Repetition(CharacterSet('"é', is_excluded=True))
    assert find_legal(unquoted, b"\xc3") == {bytes([byte]) for byte in range(0x80, 0xC0)} - {b"\xa9"}
    assert find_legal(CharacterSet("éß"), b"\xc3") == {b"\xa9", b"\x9f"}
    assert not {b"\x80", b"\xff", b"\xc0"} & find_legal(unquoted, b"a")
    assert find_legal(unquoted, b"\xe0") == {bytes([byte]) for byte in range(0xA0, 0xC0)}


def test_what_came_before_decides() -> None:
    grammar = GrammarChoice(
        (LiteralText("one two"), GrammarSequence((LiteralText("one "), Repetition(CharacterSet("0123456789")))))
    )
    assert find_legal(grammar, b"one ") >= {b"t", b"7", b"12"}
    assert b"t" not in find_legal(grammar, b"one 7")


def test_illegal_ids_are_left_out_and_the_others_keep_their_shares() -> None:
    grammar = GrammarSequence((GrammarChoice((LiteralText("a"), LiteralText("b"), LiteralText("c"))), LiteralText("!")))
    logits = np.full((1, 262), -8.0, np.float32)
    logits[0, [ord("a"), ord("b"), ord("x"), ord("y")]] = np.log([2.0, 1.0, 50.0, 20.0])
    counts: Counter[int] = Counter()
    for seed in range(600):
        sampler = TokenSampler(Sampling(temperature=1.0, seed=seed), GrammarMatcher(grammar, VocabularyIndex(Tokens())))
        (chosen,), (logprob,) = sample_ids(logits, [sampler])
        counts[chosen] += 1
        # The log-probability is the model's own, in which illegal ids have their share.
        assert logprob == pytest.approx(
            float(logits[0, chosen]) - float(np.log(np.exp(logits.astype(float)).sum())), abs=1e-4
        )
    assert set(counts) <= {ord("a"), ord("b"), ord("c")}
    assert 0.58 < counts[ord("a")] / 600 < 0.75
    greedy = TokenSampler(Sampling(), GrammarMatcher(grammar, VocabularyIndex(Tokens())))
    assert sample_ids(logits, [greedy])[0] == [ord("a")]
    assert sample_ids(logits, [greedy])[0] == [ord("!")]


def test_a_probability_among_the_ids_that_are_left() -> None:
    grammar = GrammarSequence((CharacterSet("ab"), CharacterSet("ab!"), LiteralText("c")))
    logits = np.full((1, 262), -30, np.float32)
    logits[0, [ord("!"), ord("a"), ord("b")]] = np.log([0.6, 0.3, 0.1])
    sampler = TokenSampler(Sampling(), GrammarMatcher(grammar, VocabularyIndex(Tokens())))
    assert sample_ids(logits, [sampler])[0] == [ord("a")]
    assert sampler.constrained_logprob == pytest.approx(np.log(0.75), abs=1e-4)
    assert sample_ids(logits, [sampler])[0] == [ord("!")]
    assert sampler.constrained_logprob is None
    assert sample_ids(logits, [sampler])[0] == [ord("c")]
    assert sampler.constrained_logprob == 0


@pytest.mark.parametrize(
    ("text", "forced"), [(b"", True), (b"f", False), (b"fa", True), (b"f(", False), (b"f(ab)", True)]
)
def test_one_legal_id_is_a_forced_one(text: bytes, forced: bool) -> None:
    matcher = GrammarMatcher(CALL, VocabularyIndex(Tokens()))
    for byte in text:
        matcher.advance(byte)
    assert matcher.is_forced is forced
    assert matcher.is_forced is (len(find_legal(CALL, text)) == 1)


def test_a_literal_that_several_tokens_begin_is_not_forced() -> None:
    index = VocabularyIndex(Tokens())
    assert not GrammarMatcher(LiteralText("abd"), index).is_forced
    assert GrammarMatcher(LiteralText("xab"), index).is_forced


def test_an_id_without_a_token_is_never_legal() -> None:
    @dataclass
    class WithGap(Tokens):
        def decode_token(self, token: int) -> bytes:
            if token == ord("x"):
                raise TokenizerError("token id 120 is not in this vocabulary")
            return super().decode_token(token)

    matcher = GrammarMatcher(ANYTHING, VocabularyIndex(WithGap()))
    assert not matcher.allows(ord("x"))
    assert not matcher.allows(9999)
    assert matcher.allows(ord("y"))


def test_at_the_end_of_a_grammar_only_a_stop_id_is_legal() -> None:
    grammar = GrammarSequence((LiteralText("a"), Repetition(CharacterSet("b"))))
    matcher = GrammarMatcher(grammar, VocabularyIndex(Tokens()), {ord("z")})
    assert not matcher.allows(ord("z"))
    matcher.advance(ord("a"))
    assert matcher.allows(ord("z"))
    assert matcher.allows(ord("b"))
    assert not matcher.is_forced
    ended = GrammarMatcher(LiteralText("a"), VocabularyIndex(Tokens()), {ord("z")})
    ended.advance(ord("a"))
    assert [token for token in range(262) if ended.allows(token)] == [ord("z")]
    assert ended.is_forced


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_engine_keeps_each_generation_to_its_own_grammar(checkpoint, temperature: float) -> None:
    @dataclass
    class Letters:
        control: Mapping[str, int] = field(default_factory=lambda: {"<end>": 39})
        vocabulary_size: int = 40

        def decode_token(self, token: int) -> bytes:
            return bytes([ord("A") + token])

    async def main() -> None:
        config = read_config(checkpoint / "config.json")
        async with NumpyEngine(config, random_tensors(SMALL), vocabulary=Letters(), max_batch=3) as engine:

            async def write(grammar: Grammar | None, seed: int) -> str:
                written = ""
                sampling = Sampling(temperature, seed=seed, max_tokens=12)
                stops = () if grammar == LiteralText("AB") else (39,)
                async for batch in engine.generate([1, seed], sampling=sampling, stop_ids=stops, constraint=grammar):
                    if isinstance(batch, list):
                        written += "".join("." if token.id == 39 else chr(65 + token.id) for token in batch)
                return written

            either = GrammarSequence((GrammarChoice((LiteralText("BAD"), LiteralText("BEG"))), ControlToken("<end>")))
            pattern = GrammarSequence(
                (CharacterSet("CD"), CharacterSet("CD"), CharacterSet("CD"), ControlToken("<end>"))
            )
            texts = await asyncio.gather(*(write((either, pattern, None)[n % 3], n) for n in range(18)))
            assert set(texts[0::3]) <= {"BAD.", "BEG."}
            assert all(len(text) == 4 and set(text[:3]) <= set("CD") and text[3] == "." for text in texts[1::3])
            assert all(len(text) == 12 or text.endswith(".") for text in texts[2::3])
            # One that has no way on is an error of its own: the others are written as before.
            outcomes = await asyncio.gather(write(LiteralText("AB"), 1), write(None, 2), return_exceptions=True)
            assert isinstance(outcomes[0], EngineError)
            assert "no id continues" in str(outcomes[0])
            assert outcomes[1] == texts[2]

    asyncio.run(main())


def test_what_cannot_be_followed_is_refused_by_name(checkpoint) -> None:
    with pytest.raises(EngineError, match="constraint: this engine can't keep a text to a JSON schema"):
        GrammarMatcher(Repetition(GrammarSequence((LiteralText("a"), JsonValue({})))), VocabularyIndex(Tokens()))
    with pytest.raises(EngineError, match="constraint: this engine was opened without a vocabulary"):
        NumpyEngine.load(checkpoint).generate([1], sampling=Sampling(), stop_ids=(), constraint=LiteralText("a"))
