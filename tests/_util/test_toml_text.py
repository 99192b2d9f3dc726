"""TOML that others wrote: limits that no spelling gets around, and what `tomllib` reads is read alike."""

import tomllib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule._util.toml_text import DEEPEST, MOST_BYTES, MOST_KEY_PARTS, parse_toml
from tables import each_case

REFUSED = [
    ("#" * (MOST_BYTES + 1), "over 256 kB, which no such file needs; make it shorter"),
    ("a." * 40_000 + "a = 1", "a key has more than 20 parts at line 1"),
    ("x = 1\n[" + "a . " * MOST_KEY_PARTS + "a]", "a key has more than 20 parts at line 2"),
    ("'a'." * MOST_KEY_PARTS + '"b" = 1', "a key has more than 20 parts at line 1"),
    ("a = [{" + "b\t.\t" * MOST_KEY_PARTS + "c = 1}]", "a key has more than 20 parts at line 1"),
    ("a = " + "[" * 51, "tables or arrays are nested more than 50 levels deep at line 1"),
    ("a = " + "{b = " * 51, "tables or arrays are nested more than 50 levels deep at line 1"),
    ("a = {b = {" + "c." * 19 + "d = {" + "e." * 19 + "f = {" + "g." * 19 + "h = 1}}}}", "more than 50 levels deep in"),
    ("a = " + "1" * 4301, "not TOML: an integer has at most 64 bits"),
    ("a = 9_223_372_036_854_775_808", "a: an integer has at most 64 bits"),
    ("b = [1, {c = 0x" + "f" * 9000 + "}]", "c: an integer has at most 64 bits"),
    ("a = ", "not TOML: Invalid value (at end of document, line 1)"),
    (b"a = '\xff'", "not UTF-8 text: invalid start byte at byte 5"),
]


@each_case(("text", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused_is_one_line(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        parse_toml(text if isinstance(text, bytes) else text.encode())
    assert words in str(caught.value)


def test_what_is_within_the_limits_is_read() -> None:
    key = "a." * (MOST_KEY_PARTS - 1) + "a"
    for text in (
        f"{key} = 1.5\n[x]\n{key} = '{'.a' * 30}' # {key}.{key}",
        f"a = {'[' * (DEEPEST - 1)}{']' * (DEEPEST - 1)}",
        f'a = """\n{key}.{key} = 1\n""""\nb = \'\'\'{key}.{key}\'\'\'',
        "a = -9223372036854775808",
    ):
        assert parse_toml(text.encode()) == tomllib.loads(text)


LONG = "a." * MOST_KEY_PARTS + "a"
PIECES = st.sampled_from(
    [
        *('"', "'", '"""', "'''", "\\", "\\\\", "#", "\n", "a", "b", ".", "=", "=1\n", "[", "]", "{", "}", ","),
        LONG,
        "[]\n",
    ]
)


def find_depth(value: object) -> int:
    return 1 + max(map(find_depth, value.values()), default=0) if isinstance(value, dict) else 0


@given(pieces=st.lists(PIECES, min_size=1, max_size=10))
@example(pieces=["a", "=", '"""', '"', "\\", '"', '"""', '"', "\n", LONG, "=1\n"])
@example(pieces=["a", "=", "'''", "'", "'''", "'", "'", "\n", LONG, "=1\n"])
@settings(max_examples=500, deadline=None)
def test_no_spelling_of_texts_hides_a_key(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    try:
        assert parse_toml(text.encode()) == read
        assert find_depth(read) <= MOST_KEY_PARTS + 1
    except ValueError:
        assert find_depth(read) > MOST_KEY_PARTS
