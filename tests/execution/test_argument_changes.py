"""What the model is told about arguments that a person has changed: all of it, briefly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.execution.argument_changes import describe_changes


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"n": 4}, {"n": 10}, "n: 4 → 10"),
        ({"command": "npm tset"}, {"command": "npm test"}, 'command: "npm tset" → "npm test"'),
        ({"a": 1, "b": 2}, {"a": 1}, "b: removed (it was 2)"),
        ({"a": 1}, {"a": 1, "b": "x"}, 'b: added: "x"'),
        ({"a": [1, 2], "b": 1}, {"a": [1], "b": 2}, "a: [1, 2] → [1]\nb: 1 → 2"),
        ({"t": "one\ntwo\nthree\n"}, {"t": "one\n2\nthree\n"}, "t:\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"),
        (
            {"t": "one\ntwo\n"},
            {"t": "one\ntwo"},
            "t:\n@@ -1,2 +1,2 @@\n one\n-two\n+two\\ (no newline at the end)",
        ),
    ],
)
def test_what_differs_is_said(before, after, said):
    assert describe_changes(before, after) == said


def test_a_long_line_is_cut_to_what_differs():
    said = describe_changes({"c": "x" * 5_000 + "old" + "y" * 5_000}, {"c": "x" * 5_000 + "new" + "y" * 5_000})
    assert said == f"c: …{'x' * 20}old{'y' * 20}… → …{'x' * 20}new{'y' * 20}…"


def test_a_long_difference_is_bounded_and_says_how_much_is_left_out():
    before, after = ("\n".join(f"{word} {number}" for number in range(500)) for word in ("a", "b"))
    said = describe_changes({"t": before}, {"t": after})
    assert len(said.split("\n")) == 62
    assert said.endswith("[… 941 more lines of this difference left out …]")
    assert len(describe_changes({"t": "a\n" + "x" * 10_000}, {"t": "b\n" + "y" * 10_000})) < 1_000


values = st.one_of(st.none(), st.integers(), st.text(max_size=40), st.lists(st.integers(), max_size=3))


@given(*[st.dictionaries(st.sampled_from("abc"), values)] * 2)
def test_every_argument_that_differs_is_named_and_no_other(before, after):
    said = describe_changes(before, after)
    for name in "abc":
        is_same = name in before and name in after and before[name] == after[name]
        differs = (name in before or name in after) and not is_same
        assert any(line.startswith(f"{name}:") for line in said.split("\n")) or not differs
    assert bool(said) == (before != after)
