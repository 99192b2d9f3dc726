"""Patterns of JSON Schemas, searched by an engine that doesn't backtrack but reads them as ECMA-262 does."""

import pytest

from ferrule._util.patterns import MAX_PLACES, PatternRefused, compile_pattern
from tables import each_case

MATCHING = [
    # pattern, what it is found in, what it isn't found in
    ("b", ["abc"], ["acd", ""]),
    ("", ["", "x"], []),
    ("a|b|", ["c"], []),
    ("a$", ["ba"], ["a\n", "ab"]),
    ("^.$", ["x", "😀"], ["\n", "\r", "\u2028", "\u2029", "xx"]),
    (r"^\d$", ["3"], ["٣", "x"]),
    (r"^\D$", ["٣", "x"], ["3"]),
    (r"^\w+$", ["zoe_1"], ["Zoë", "a-b"]),
    (r"^\W$", ["ë", "-"], ["_"]),
    (r"^\s$", [" ", "\t", "\v", "\u00a0", "\ufeff", "\u2029", "\u3000"], ["\u200b", "x"]),
    (r"^\S$", ["x"], ["\ufeff"]),
    (r"\bfoo\b", ["a foo", "éfoo"], ["xfoo"]),
    (r"\Bfoo", ["xfoo"], ["foo"]),
    (r"^\/x\-y\_\.\é$", ["/x-y_.é"], ["/x-y_é"]),
    (r"^\cA\cz$", ["\x01\x1a"], ["cAcz"]),
    (r"^\0\x41\u0042\u{1F600}\ud83d\ude00$", ["\0AB😀😀"], []),
    (r"^\t\n\v\f\r$", ["\t\n\v\f\r"], []),
    ("(?<year>[0-9]{4})-(?P<month>[0-9]{2})", ["in 2026-11"], ["2026-1"]),
    ("^(?:ab)+?$", ["abab"], ["aba"]),
    ("(?i)^abc$", ["aBC"], ["abcd"]),
    ("(?i:a)b", ["Ab"], ["aB"]),
    ("^{a}x{2,}y{1,2}$", ["{a}xxxy"], ["{a}xy", "{a}xxyyy"]),
    ("^a{3$", ["a{3"], ["aaa"]),
    ("^[a&&b]$", ["a", "&", "b"], ["c"]),
    ("^[+--b~~]$", ["+", ",", "-", "b", "~"], ["c"]),
    ("^[[a]$", ["[", "a"], ["]"]),
    ("^[[:alpha:]]$", ["a]", ":]"], ["z", "z]"]),
    (r"^[\b]$", ["\b"], ["b"]),
    (r"^[\w-]+$", ["a-b"], ["é"]),
    (r"^[\w-.]+$", ["a-b.c"], ["é"]),
    (r"^[^\D]$", ["3"], ["a"]),
    (r"^[\]\\^-]+$", ["]\\^-"], ["a"]),
    ("^[à-ü]$", ["é"], ["e"]),
    (r"^\p{L}\P{Lu}\p{Script=Greek}[\p{Nd}x]$", ["éeα٣", "éeαx"], ["1eαx", "éEαx", "éeax"]),
    ("# x", ["# x"], ["x"]),
    (r"^\<$", ["<"], [""]),
    ("^.$", ["\ud800"], []),
]


@each_case(("pattern", "found", "missing"), MATCHING)
def test_a_pattern_means_what_ecma_262_says(pattern: str, found: list[str], missing: list[str]) -> None:
    searched = compile_pattern(pattern)
    assert [text for text in found if not searched.matches(text)] == []
    assert [text for text in missing if searched.matches(text)] == []


REFUSED = [
    ("(?=a)b", "it has a lookaround"),
    ("(?!a)b", "it has a lookaround"),
    ("(?<=a)b", "it has a lookaround"),
    ("(?<!a)b", "it has a lookaround"),
    (r"(a)\1", "it has a backreference"),
    (r"(?<n>a)\k<n>", "it has a backreference"),
    (r"\01", "it has a backreference"),
    (r"a\Z", r"\Z isn't in ECMA-262"),
    (r"\Aa", r"\A isn't in ECMA-262"),
    ("a\\", "\\ isn't in ECMA-262"),
    (r"\pL", r"engines read \p without a name in braces differently"),
    (r"\p{Unheard}", "the engine without backtracking can't read it"),
    (r"\ud83d", "an escape doesn't name a character"),
    (r"\u{110000}", "an escape doesn't name a character"),
    ("\ud83d", "half of a surrogate pair is not a character"),
    ("[]a]", "engines read a class that begins with ']' differently"),
    ("[^]", "engines read a class that begins with ']' differently"),
    ("[a", "a class isn't closed"),
    (r"[a-\d]", "a class has an invalid range"),
    ("[b-a]", "a class has an invalid range"),
    ("a{,3}", "engines read '{,' differently"),
    ("a{3,2}", "a repetition's limits are in the wrong order"),
    ("a++", "it repeats nothing, or a repetition"),
    ("a{2}{3}", "it repeats nothing, or a repetition"),
    ("^*", "it repeats nothing, or a repetition"),
    ("(*a)", "it repeats nothing, or a repetition"),
    ("(a", "a group isn't closed"),
    ("a)", "it has an unmatched ')'"),
    ("(?>a)", "it has a group that isn't in ECMA-262"),
    ("(?s).", "it has a group that isn't in ECMA-262"),
    ("(?#a)", "it has a group that isn't in ECMA-262"),
    ("(a{1000}){1000}", "its repetitions make it too large"),
    ("a{99999999999999999999}", "its repetitions make it too large"),
    ("x" * (MAX_PLACES + 1), "its repetitions make it too large"),
    (f"({'|'.join('ab' * MAX_PLACES)})", "its repetitions make it too large"),
    (r"[\p{L}\p{Nd}]{4000}", "its repetitions make it too large"),
    ("(" * 200 + ")" * 200, "its groups are nested too deeply"),
]


@each_case(("pattern", "reason"), REFUSED)
def test_what_is_not_searched_for_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternRefused) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == reason


# In an engine that backtracks, each of them takes longer than anybody waits.
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 60 + "!"),
        ("^(a|a)*$", "a" * 60 + "!"),
        ("^(.*a){30}$", "a" * 60 + "!"),
        ("(x+x+)+y", "x" * 100),
        (r"^([a-z0-9]+[._-]?)+@", "a" * 80),
        ("(a?){60}a{60}b", "a" * 60),
    ],
)
def test_no_text_makes_a_search_backtrack(pattern: str, text: str) -> None:
    assert not compile_pattern(pattern).matches(text)
