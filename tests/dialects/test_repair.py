"""Repair: what is put right and what is not, and that nothing that was passed on before has to be taken back."""

import json
import re
import time

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from ferrule.conversation import ToolCall
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.reader.json import MOST_LEVELS, read_json_value
from ferrule.dialects.reader.repair import repair_json
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall
from ferrule.events import CallMalformed
from tables import each_case


def passed_on(text):
    """What the strict reader has passed on of `text` before it ended or gave up, and whether it read it whole."""
    stream = InputStream(text)
    stream.ended = True
    fragments = []

    def put(fragment, end):
        fragments.append(fragment)
        stream.take(end)

    try:
        for _ in read_json_value(stream, put):
            raise AssertionError("it waits for more of a text that has ended")
    except (NotACall, EndOfText):
        return "".join(fragments), False
    return "".join(fragments), not text[stream.at :].strip(" \t\r\n")


def no_constant(name):
    raise ValueError(name)


def decoded(text):
    return json.loads(text, parse_constant=no_constant)


REPAIRS = [
    ("{'a': 'b'}", '{"a": "b"}', ["single_quotes"]),
    ("""{'a': 'say "x"'}""", r"""{"a": "say \"x\""}""", ["single_quotes"]),
    (r"""['it\'s', 'a\"b']""", r"""["it's", "a\"b"]""", ["single_quotes"]),
    ("[1, 2,\n ]", "[1, 2]", ["trailing_comma"]),
    ('{"a": 1 ,\n }', '{"a": 1 }', ["trailing_comma"]),
    ('{"a": [True, False], "b": None}', '{"a": [true, false], "b": null}', ["python_literals"]),
    ('{"a": [1, {"b": 2', '{"a": [1, {"b": 2}]}', ["missing_closer"]),
    ('{"a": "x" \n', '{"a": "x" \n}', ["missing_closer"]),
    ('{"a": [1, ', '{"a": [1]}', ["trailing_comma", "missing_closer"]),
    ("{", "{}", ["missing_closer"]),
    ('```json\n{"a": 1}\n```\n', '\n{"a": 1}\n', ["fence"]),
    ('```{"a": 1}```', '{"a": 1}', ["fence"]),
    ("``` [1, ```", " [1]", ["fence", "trailing_comma", "missing_closer"]),
    ('{"a": "one\ntwo\tthree\x00"}', r'{"a": "one\ntwo\tthree\u0000"}', ["unescaped_control"]),
    ('{city: "Paris", $x_1:2, due-date : 3}', '{"city": "Paris", "$x_1":2, "due-date" : 3}', ["unquoted_key"]),
    (r'["it\'s"]', '["it\'s"]', ["invalid_escape"]),
    (r'["a\_b\.c\u12\x41"]', r'["a\\_b\\.c\\u12\\x41"]', ["invalid_escape"]),
    ('["a\\\nb"]', r'["a\\\nb"]', ["invalid_escape", "unescaped_control"]),
    ('{"a": 1}}', '{"a": 1}', ["extra_closer"]),
    ('{"a": 1}\n;\n', '{"a": 1}\n\n', ["extra_closer"]),
    ("{'a': True, 'b': 'c',}", '{"a": true, "b": "c"}', ["single_quotes", "python_literals", "trailing_comma"]),
]


@each_case(("text", "expected", "names"), REPAIRS)
def test_what_is_put_right(text, expected, names):
    assert repair_json(text) == (expected, tuple(names))
    decoded(expected)
    assert expected.startswith(passed_on(text)[0])


@each_case(
    "text",
    [
        *("", "  ", "x", ",", "}", "[,]", "[1,,2]", "[1,,]", "{,}", "[1 2]", '{"a": 1 "b": 2}', "[1}", '{"a": [1}'),
        *("[NaN]", "[Infinity]", "[-Infinity]", "nan", "[01]", "[+1]", "[1.]", "[.5]", "[1e]", "[0x1]", "[٣]"),
        *('{"a": "cut', '{"a": "cut\\', '{"a', '{"a"', '{"a":', "{a", "{a:", "['cut", '{"a": tru', '{"a": -'),
        *("[1] // note", "[1, /* note */ 2]", "# note\n[1]", "['it's']", "{1: 2}", "{None: 1}", "[\u00a01]", "(1,)"),
        f"[{'9' * 5000}]",
        *("{} {}", "{}}}", "{};}", "[1] x", '```json\n{"a": 1}', '{"a": 1}\n```', "```yaml\n[1]\n```", "```"),
    ],
)
def test_what_is_left_alone(text):
    assert repair_json(text) is None


@pytest.mark.parametrize("text", ["1", ' {"a" : [1 , -2.5e3]}\n', '"\\u00e9\\n\\ud800"', "[]", "{ }", '{"a":1,"a":2}'])
def test_json_stays_as_it_is(text):
    assert repair_json(text) == (text, ())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
CONTAINERS = VALUES.filter(lambda value: isinstance(value, list | dict) and value)
SPACES = st.text(" \t\r\n", max_size=3)


@st.composite
def dumped(draw, values=CONTAINERS):
    """(a value, its JSON): with random indents and separators."""
    value = draw(values)
    separators = draw(SPACES) + "," + draw(SPACES), draw(SPACES) + ":" + draw(SPACES)
    indent = draw(st.none() | st.integers(0, 3) | st.just("\t"))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return value, draw(SPACES) + text


def tokens(text):
    """The strings of a JSON text, whole, and the other characters one by one, as (token, where it starts)."""
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] == '"':
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
        yield text[at:end], at
        at = end


def put_in(text, start, old, new):
    return text[:start] + new + text[start + len(old) :]


def with_single_quotes(text, draw):
    strings = [(token, at) for token, at in tokens(text) if token[0] == '"']
    assume(strings)
    token, at = draw(st.sampled_from(strings))
    inside = token[1:-1].replace("'", "\\'")
    return put_in(text, at, token, f"'{inside}'"), "single_quotes"


def with_a_trailing_comma(text, draw):
    pairs = [at for token, at in tokens(text) if token in "]}" and text[:at].rstrip(" \t\r\n")[-1] not in "[{"]
    assume(pairs)
    at = draw(st.sampled_from(pairs))
    return text[:at] + "," + draw(SPACES) + text[at:], "trailing_comma"


def with_a_python_literal(text, draw):
    names = {"true": "True", "false": "False", "null": "None"}
    outside = [at for token, at in tokens(text) if token[0] != '"']
    found = [(name, at) for at in outside for name in names if text.startswith(name, at)]
    assume(found)
    name, at = draw(st.sampled_from(found))
    return put_in(text, at, name, names[name]), "python_literals"


def without_closers(text, draw):
    rest = text.rstrip(" \t\r\n")
    for _ in range(draw(st.integers(1, 3))):
        shorter = rest.rstrip(" \t\r\n")
        if shorter[-1] not in "]}" or len(shorter) == 1:
            break
        rest = shorter[:-1]
    return rest, "missing_closer"


def with_an_extra_closer(text, draw):
    return text + draw(SPACES) + draw(st.sampled_from("}];")) + draw(SPACES), "extra_closer"


def in_a_fence(text, draw):
    return f"{draw(SPACES)}```{draw(st.sampled_from(['json', 'JSON', '']))}\n{text}\n```{draw(SPACES)}", "fence"


def with_a_raw_control(text, draw):
    raws = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\u0000": "\x00"}
    found = []
    for token, at in tokens(text):
        begun = 1
        while token[0] == '"' and begun < len(token) - 1:
            found += [(escape, at + begun) for escape in raws if token.startswith(escape, begun)]
            begun += 2 if token[begun] == "\\" else 1
    assume(found)
    escape, at = draw(st.sampled_from(found))
    return put_in(text, at, escape, raws[escape]), "unescaped_control"


def with_an_invalid_escape(text, draw):
    found = []
    for token, at in tokens(text):
        begun = 1
        while token[0] == '"' and begun < len(token) - 1:
            if token[begun] == "'":
                found.append(("'", r"\'", at + begun))
            if token[begun : begun + 2] == "\\\\" and token[begun + 2] not in "\"'\\/bfnrtu":
                found.append(("\\\\", "\\", at + begun))
            begun += 2 if token[begun] == "\\" else 1
    assume(found)
    old, new, at = draw(st.sampled_from(found))
    return put_in(text, at, old, new), "invalid_escape"


def with_an_unquoted_key(text, draw):
    found = [
        (token, at)
        for token, at in tokens(text)
        if re.fullmatch(r"[^\W\d]\w*", token[1:-1])
        and token[1:-1] not in ("True", "False", "None")
        and text[at + len(token) :].lstrip(" \t\r\n").startswith(":")
    ]
    assume(found)
    token, at = draw(st.sampled_from(found))
    return put_in(text, at, token, token[1:-1]), "unquoted_key"


NAMES = st.sampled_from(["city", "a_1", "True1", "été"])
RISKY = st.text("a'\"\\\n\t\r\x00_.", min_size=1, max_size=6)
HOLDERS = st.dictionaries(NAMES, RISKY | st.lists(RISKY | st.booleans() | st.none() | st.integers()), min_size=1)
NEARLY = st.one_of(dumped(), dumped(HOLDERS))


@pytest.mark.parametrize(
    "damage",
    [
        with_single_quotes,
        with_a_trailing_comma,
        with_a_python_literal,
        without_closers,
        with_an_extra_closer,
        in_a_fence,
        with_a_raw_control,
        with_an_invalid_escape,
        with_an_unquoted_key,
    ],
)
@given(nearly=NEARLY, data=st.data())
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # few texts hold what some damages need
def test_a_damage_is_put_right_and_nothing_is_taken_back(damage, nearly, data):
    value, text = nearly
    damaged, name = damage(text, data.draw)
    sent, _ = passed_on(damaged)
    made, names = repair_json(damaged)
    assert made.startswith(sent)
    assert decoded(made) == value
    assert names == (name,)


@given(dumped(VALUES), SPACES)
def test_json_of_any_layout_stays_as_it_is(nearly, after):
    _, text = nearly
    assert repair_json(text + after) == (text + after, ())


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("aé'\"\\\n\t ,:{}[]", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab'\"", max_size=4), inner, max_size=4),
))  # fmt: skip
def test_what_python_prints_is_read(value):
    made, _ = repair_json(repr(value))
    assert decoded(made) == value


SCRAPS = st.text("{}[]:,;\"'\\`ntuTrueNone01-.eE \n\t/é", max_size=30) | st.text(max_size=20)


@st.composite
def spoiled(draw):
    """JSON in which a few places were cut out and written over."""
    _, text = draw(NEARLY)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 3)))
        text = text[:start] + draw(SCRAPS.map(lambda scrap: scrap[:3])) + text[end:]
    return text


@example('{"0\\u"000')
@given(SCRAPS | spoiled())
def test_any_text_is_repaired_to_json_that_continues_what_was_passed_on_or_not_at_all(text):
    sent, is_whole = passed_on(text)
    result = repair_json(text)
    if is_whole:
        assert result == (text, ())
    if result is not None:
        made, names = result
        decoded(made)
        assert made.startswith(sent)
        assert bool(names) == (not is_whole)
        assert names or made == text


def test_nesting_has_a_limit():
    most = "[" * MOST_LEVELS
    assert repair_json(most) == (most + "]" * MOST_LEVELS, ("missing_closer",))
    for text in ("[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, most + "[]"):
        assert repair_json(text) is None
    siblings = "[" + "[]," * 100_000
    assert decoded(repair_json(siblings)[0]) == [[]] * 100_000


@pytest.mark.parametrize(
    "unit", ["1, ", "'a', ", '"\\_", ', "{a: None,}, ", "  ", "'\n', ", "[[]], ", '"', "```", "\\", "a", ",", "'\\"]
)
def test_time_grows_with_the_length_alone(unit):
    started = time.process_time()
    for opener in ("", "[", '["', "['", "{", "```json "):
        repair_json(opener + unit * (200_000 // len(unit)))
    # Half a second for each is far more than they need, and far less than anything quadratic would.
    assert time.process_time() - started < 3


@pytest.mark.parametrize("name", ["deepseek_v3", "harmony", "json_in_tag", "kimi_k2", "mistral", "native_3", "hermes"])
def test_a_number_of_too_many_digits_is_malformed_and_raises_nothing(name):
    notation = get_notation(name)
    text = notation.call(ToolCall("call_1", "f", '{"n": 1}')).replace("1}", "9" * 5000 + "}")
    reader = notation.reader()
    [kind] = [e.kind for e in reader.feed(text) + reader.close(stopped=True) if isinstance(e, CallMalformed)]
    assert kind == "invalid_json"
