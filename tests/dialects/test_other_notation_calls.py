"""Models that fall back to JSON or Python inside their own notation: read, with the repair named, or malformed."""

import json

import pytest
from dialect_events import calls, check_spans, joined, read

from counted_work import count_functions
from ferrule.conversation import ToolCall
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.events import CallFinished, CallMalformed, TextDelta
from ferrule.toolspec import ToolSpec
from tables import each_case

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "flags": {"type": "array"}}
WEATHER = ToolSpec("get_weather", "", {"type": "object", "properties": PROPERTIES, "required": ["city"]})
NOW = ToolSpec("now", "", {"type": "object", "properties": {}})
TOOLS = [WEATHER, NOW]
PARIS = ("get_weather", {"city": "Paris"})
NOTHING = ("now", {})

JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
FORMS = {
    "json": (JSON, [PARIS], "json_call"),
    "list": (f'[{JSON}, {{"name": "now", "arguments": {{}}}}]', [PARIS, NOTHING], "json_list"),
    "python": ('[get_weather(city="Paris"), now()]', [PARIS, NOTHING], "python_call"),
    "one python call": ('get_weather(city="Paris")', [PARIS], "python_call"),
    "name and json": ('get_weather\n{"city": "Paris"}', [PARIS], "json_arguments"),
    "name and list": ("now\n[]", [NOTHING], "empty_arguments"),
}
# The markers between which each family's calls are.
MARKED = {
    "hermes": ("<tool_call>\n", "\n</tool_call>"),
    "qwen3_coder": ("<tool_call>\n", "\n</tool_call>"),
    "glm45": ("<tool_call>", "\n</tool_call>"),
    "glm47": ("<tool_call>", "</tool_call>"),
    "spark": ("<tool_call>", "</tool_call>"),
    "gemma4": ("<|tool_call>", "<tool_call|>"),
    "minimax_m2": ("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    "minimax_m3": ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    "deepseek_v3": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    "deepseek_v31": ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    "deepseek_v4": ("<｜DSML｜tool_calls>\n", "\n</｜DSML｜tool_calls>"),
    "kimi_k2": ("<|tool_call_begin|>", "<|tool_call_end|>"),
    "lfm2": ("<|tool_call_start|>", "<|tool_call_end|>"),
    "olmo3": ("<function_calls>", "</function_calls>"),
    "apertus": ("<|tools_prefix|>", "<|tools_suffix|>"),
    "nemotron_v2": ("<TOOLCALL>", "</TOOLCALL>"),
    "mistral": ("[TOOL_CALLS]", ""),
    "llama3_json": ("<|python_tag|>", ""),
    "ovis": ("<tool_call>", "</tool_call>"),
}
# What is some family's own form, and so no repair.
OWN = {
    ("hermes", "json"),
    ("mistral", "list"),
    ("llama3_json", "json"),
    ("nemotron_v2", "list"),
    ("nemotron_v2", "json"),
}
OWN |= {(name, form) for name in ("lfm2", "olmo3") for form in ("python", "one python call")}
OWN |= {("mistral", "name and json"), ("ovis", "name and list")}


def both_ways(name, text, tools=TOOLS, stopped=True, **options):
    """The events of a text, which are the same character by character, and whose spans tile it."""
    notation = get_notation(name)
    events = joined(read(notation.reader(tools, **options), [text], stopped))
    assert joined(read(notation.reader(tools, **options), text, stopped)) == events
    check_spans(events, text)
    return events


def found(events):
    return [(call.name, call.decode()) for call in calls(events)]


def repairs(events):
    return [event.repairs for event in events if isinstance(event, CallFinished)]


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@each_case("form", FORMS)
@each_case("name", MARKED)
def test_a_call_in_another_notation_is_read_and_the_repair_named(name, form):
    written, wanted, repair = FORMS[form]
    before, after = MARKED[name]
    events = both_ways(name, f"So: {before}{written}{after}")
    assert found(events) == wanted
    assert text_of(events).strip() == "So:"
    if (name, form) in OWN:
        assert all(one == () for one in repairs(events))
    else:
        assert all(one[0] in (repair, "json_call", "json_list") for one in repairs(events)), repairs(events)


@each_case("form", FORMS)
@each_case("name", MARKED)
def test_without_repair_it_is_malformed_and_nothing_is_lost(name, form):
    if (name, form) in OWN or (name in ("lfm2", "olmo3") and form in ("json", "list")):
        # Python's lists take objects, with the name of the repair or without.
        return
    before, after = MARKED[name]
    events = both_ways(name, f"{before}{FORMS[form][0]}{after}", repair=False)
    assert not found(events)


@each_case("name", MARKED)
@each_case(
    "written",
    [
        '{"name": "get_weather", "arguments": {"town": 1}}',
        'get_weather("Paris")',
        "get_weather",
        'I would call get_weather(city="Paris") now',
        "unknown_tool\n[]",
    ],
)
def test_what_no_tool_accepts_or_is_no_call_is_not_guessed(name, written):
    before, after = MARKED[name]
    events = both_ways(name, f"{before}{written}{after}")
    # What is whole as JSON, or as a name in notations that have no more of a call, is left to the validation.
    assert all(arguments in ({}, {"town": 1}, {"values": []}) for _, arguments in found(events))
    assert all(repair == () or repair[0] == "json_call" for repair in repairs(events))


GEMMA = "<|tool_call>call:get_weather{}<tool_call|>"


@each_case(
    ("arguments", "wanted", "named"),
    [
        ('{city:"Paris"}', {"city": "Paris"}, ("json_string",)),
        ('{"city": "Paris", "days": 2}', {"city": "Paris", "days": 2}, ("json_string",)),
        ("{city:'Paris',days:2}", {"city": "Paris", "days": 2}, ("single_quotes",)),
        ("{'city':<|\"|>Paris<|\"|>}", {"city": "Paris"}, ("single_quotes",)),
        ('{days:2,city:"it\'s \\"so\\"\\n"}', {"days": 2, "city": 'it\'s "so"\n'}, ("json_string",)),
        ('{city:"a <tool_call|> b, {c}"}', {"city": "a <tool_call|> b, {c}"}, ("json_string",)),
        ('{city:<|"|>Paris<|"|>,flags:["a",\'b\',<|"|>c<|"|>]}', {"city": "Paris", "flags": ["a", "b", "c"]}, None),
        ('{city:<|"|>"Paris"<|"|>}', {"city": '"Paris"'}, ()),
        ('{city:5" screen}', None, None),
        ("{city:'tis the season}", None, None),
        ('{city:"Paris}', None, None),
    ],
)
def test_strings_in_other_quotes_inside_of_gemmas_braces(arguments, wanted, named):
    events = both_ways("gemma4", GEMMA.replace("{}", arguments))
    assert found(events) == ([("get_weather", wanted)] if wanted else [])
    assert len([e for e in events if isinstance(e, CallMalformed)]) == (wanted is None)
    if named is not None:
        assert repairs(events) == [named]
    elif wanted:
        assert repairs(events) == [("json_string", "single_quotes")]
        assert found(both_ways("gemma4", GEMMA.replace("{}", arguments), repair=False)) == []


@each_case(
    ("name", "written"),
    [
        ("hermes", '<tool_call>\n{"name": "now", "arguments": NOTHING}\n</tool_call>'),
        ("llama3_json", '{"name": "now", "parameters": NOTHING}'),
        ("nemotron_v2", '<TOOLCALL>[{"name": "now", "arguments": NOTHING}]</TOOLCALL>'),
        ("apertus", '<|tools_prefix|>[{"now": NOTHING}]<|tools_suffix|>'),
        ("mistral", "[TOOL_CALLS]now[ARGS]NOTHING</s>"),
        ("kimi_k2", "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>NOTHING<|tool_call_end|>"),
        ("deepseek_v31", "<｜tool▁call▁begin｜>now<｜tool▁sep｜>NOTHING<｜tool▁call▁end｜>"),
        ("harmony", "<|channel|>commentary to=functions.now<|message|>NOTHING<|call|>"),
        ("minimax_m2", '<minimax:tool_call><invoke name="now">NOTHING</invoke></minimax:tool_call>'),
        ("qwen3_coder", "<tool_call>\n<function=now>\nNOTHING\n</function>\n</tool_call>"),
        ("glm45", "<tool_call>now\nNOTHING\n</tool_call>"),
        ("muse_glimmer", " to=now<|message|>NOTHING<|eom|>"),
        ("gemma4", "<|tool_call>call:nowNOTHING<tool_call|>"),
    ],
)
def test_empty_text_and_an_empty_list_are_no_arguments(name, written):
    objects = ("hermes", "llama3_json", "nemotron_v2", "apertus")
    for nothing in ('""', "[]", "[ ]") if name in objects else ("", "[]"):
        events = both_ways(name, written.replace("NOTHING", nothing))
        assert found(events) == [NOTHING], nothing
        # Where an empty text is a family's own form, there is nothing to repair.
        if nothing:
            assert [one[0] for one in repairs(events)] == ["empty_arguments"], nothing
    required = written.replace("now", "get_weather")
    assert found(both_ways(name, required.replace("NOTHING", "[]"))) == []


@pytest.mark.parametrize("name", ["glm45", "qwen3_coder", "minimax_m2"])
def test_a_closer_inside_of_a_json_string_is_part_of_it(name):
    before, after = MARKED[name]
    call = json.dumps({"name": "get_weather", "arguments": {"city": f"x{after} y"}})
    events = both_ways(name, f"{before}{call}{after}")
    assert found(events) == [("get_weather", {"city": f"x{after} y"})]
    assert repairs(events) == [("json_call",)]


def test_json_in_place_of_the_parameters_of_a_tag():
    events = both_ways(
        "qwen3_coder", '<tool_call>\n<function=get_weather>\n{"city": "</function>"}\n</function>\n</tool_call> Yes.'
    )
    assert found(events) == [("get_weather", {"city": "</function>"})]
    assert (repairs(events), text_of(events)) == ([("json_arguments",)], " Yes.")


@pytest.mark.parametrize(
    ("name", "written", "wanted", "named"),
    [
        ("pythonic", '{"name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS], ("json_call",)),
        ("pythonic", f"[{JSON}]", [PARIS], ("json_list",)),
        ("pythonic", f"<|python_start|>{JSON}<|python_end|>", [PARIS], ("json_call",)),
        ("llama3_json", FORMS["list"][0], [PARIS, NOTHING], ("json_list",)),
        ("llama3_json", f"<|python_tag|>{FORMS['list'][0]} Done.", [PARIS, NOTHING], ("json_list",)),
        ("llama3_json", '[get_weather(city="Paris")]', [PARIS], ("python_call",)),
        ("llama3_json", '<|python_tag|>get_weather.call(city="Paris")', [PARIS], ("python_call",)),
    ],
)
def test_the_calls_of_llama_at_the_beginning_of_a_message(name, written, wanted, named):
    events = both_ways(name, written)
    assert found(events) == wanted
    assert set(repairs(events)) == {named}


@each_case(("name", "own"), [("llama3_json", ("{", ())), ("pythonic", ("[get", ()))], ids=["llama3_json", "pythonic"])
@each_case(
    ("written", "wanted", "form"),
    [
        (JSON, [PARIS], "json_call"),
        (f"{JSON}\n{JSON}", [PARIS, PARIS], "json_call"),
        (f'{JSON}; {{"name": "now", "parameters": {{}}}}', [PARIS, NOTHING], "json_call"),
        (FORMS["list"][0], [PARIS, NOTHING], "json_list"),
        ('[get_weather(city="Paris"), now()]', [PARIS, NOTHING], "python_call"),
        ('{"type": "function", "function": ' + JSON + "}", [PARIS], "json_call"),
    ],
)
@each_case("before", ["Sure.\n", 'I\'ll use {braces}, [a list](of) and {"name": 1} first: '])
@each_case("end", ["", " \n", "<|eot_id|>"])
def test_the_calls_of_llama_after_text_count_at_the_end_of_the_message(name, own, before, written, wanted, form, end):
    events = both_ways(name, f"{before}{written}{end}")
    assert found(events) == wanted
    assert text_of(events) == before
    is_own = written.startswith(own[0])
    assert set(repairs(events)) == {("after_text",) if is_own else ("after_text", form)}


@each_case("name", ["llama3_json", "pythonic"])
@each_case(
    "written",
    [
        f"{JSON} Would you like to know more?",
        f"```json\n{JSON}\n```",
        '{"name": "unknown", "arguments": {}}',
        '{"name": "get_weather", "arguments": {"town": 1}}',
        '{"name": "get_weather"}',
        '{"name": "now"}',
        '{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}',
        '[get_weather(city="Paris")] would do',
        "[get_weather(city=Paris)]",
        '[unknown(city="Paris")]',
        '{"city": "Paris"}',
        JSON[:-1],
    ],
)
def test_what_may_be_an_example_in_the_text_of_llama_is_text(name, written):
    text = f"So: {written}"
    for tools, stopped in ((TOOLS, True), (TOOLS, False), ([], True)):
        events = both_ways(name, text, tools, stopped)
        assert (found(events), text_of(events)) == ([], text)
    assert text_of(both_ways(name, f"So: {JSON}", stopped=False)) == f"So: {JSON}"
    assert text_of(both_ways(name, f"So: {JSON}", repair=False)) == f"So: {JSON}"


def test_a_control_token_in_such_text_is_what_it_is():
    reader = get_notation("llama3_json").reader(TOOLS)
    pieces = (('So: {"name": "get', False), ("<|python_tag|>", True), (JSON, False), ("<|eot_id|>", True))
    events = [event for piece in pieces for event in reader.feed(*piece)] + reader.close(True)
    assert found(events) == [PARIS]
    assert text_of(events) == 'So: {"name": "get'


def test_text_of_llama_streams_up_to_a_bracket_and_from_where_it_is_no_call():
    reader = get_notation("llama3_json").reader(TOOLS)
    assert text_of(reader.feed("See {")) == "See "
    assert text_of(reader.feed("a: 1} and")) == "{a: 1} and"


# All that declare a boolean as bare text.
@pytest.mark.parametrize(
    "written",
    [
        ("spark", "<tool_call>f<arg_key>on</arg_key><arg_value>{}</arg_value></tool_call>"),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=on>\n{}\n</parameter>\n</function>\n</tool_call>"),
        ("gemma4", "<|tool_call>call:f{{on:{}}}<tool_call|>"),
    ],
)
def test_a_number_for_a_boolean_is_named(written):
    name, text = written
    for schema, wanted, named in (
        ({"type": "boolean"}, {"1": True, "0": False}, ("number_as_boolean",)),
        ({"type": ["boolean", "null"]}, {"1": True, "0": False}, ("number_as_boolean",)),
        ({"type": ["boolean", "integer"]}, {"1": 1, "0": 0}, ()),
        ({"type": "string"}, {"1": "1"}, ()),
        ({"type": "boolean"}, {"2": "2", "true": True, "False": False}, ()),
    ):
        tool = ToolSpec("f", "", {"type": "object", "properties": {"on": schema}})
        for value, read_as in wanted.items():
            events = both_ways(name, text.format(value), [tool])
            assert calls(events)[0].decode() == {"on": read_as}
            assert type(calls(events)[0].decode()["on"]) is type(read_as)
            assert repairs(events) == [named]
    strict = both_ways(name, text.format(1), [tool], repair=False)
    assert calls(strict)[0].decode() == {"on": "1"}


def test_muses_commentary_is_text_to_be_shown():
    text = " to=self<|message|>Hm.<|eom|><|start|>assistant to=commentary<|message|>Looking.<|eom|>"
    call = get_notation("muse_glimmer").call(ToolCall("call_1", "now", "{}"), [NOW])
    events = both_ways("muse_glimmer", f"{text}<|start|>assistant{call}<|eot|>")
    assert (text_of(events), found(events)) == ("Looking.", [NOTHING])
    quoted = both_ways("muse_glimmer", f" to=commentary<|message|>I write {call[len(' to=now<|message|>') :]}<|eom|>")
    assert found(quoted) == []


@pytest.mark.parametrize("name", [name for name, family in load_families().items() if not family.one_tool])
def test_rereading_a_broken_call_takes_linear_time(name, monkeypatch):
    """Counted in characters that are read again: each of them in at most one call, whatever the text."""
    import ferrule.dialects.notations.fallback as fallback

    reread = []
    kept = fallback.recover_call
    monkeypatch.setattr(fallback, "recover_call", lambda *given: reread.append(len(given[3])) or kept(*given))
    notation = get_notation(name)
    opener = next((one for one in notation.family.syntax.openers if one.strip()), "{")
    closer = (*notation.family.syntax.closers, "")[0]
    text = f'{opener}[{{"name": "x", {closer}' * 60 + opener * 40
    read(notation.reader(TOOLS), [text])
    assert sum(reread) <= len(text)


@pytest.mark.parametrize("name", ["llama3_json", "pythonic"])
async def test_brackets_that_begin_no_call_cost_little(name):
    async def count(text):
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)]

        def read_all():
            reader = get_dialect(name).reader(TOOLS)
            for piece in pieces:
                reader.feed(piece)
            reader.close(stopped=True)

        return await count_functions(read_all)

    brackets = "Use the list xs[0], then {x: 1} and [a, b] too. "
    prose = "Use the list xs too, and whatever follows it is. "
    await count(brackets)  # which imports what only brackets need
    assert await count(200 * brackets) <= 2.2 * await count(200 * prose)
    assert await count(800 * brackets) <= 4.4 * await count(200 * brackets)


def test_space_after_a_bracket_may_be_of_any_length():
    call = JSON.replace("{", "{" + 200 * " ", 1)
    for pieces in ([f"Sure. {call}"], list(f"Sure. {call}")):
        reader = get_dialect("llama3_json").reader(TOOLS)
        events = [event for piece in pieces for event in reader.feed(piece)] + reader.close(stopped=True)
        assert [event.call.name for event in events if isinstance(event, CallFinished)] == ["get_weather"]
