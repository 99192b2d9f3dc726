"""`ferrule dialects` and `ferrule parse`, as a stranger types them."""

import json
import re
import subprocess

import pytest
from terminals import COMMAND, Terminal, environment, ferrule

TEXT = (
    "<think>\nParis, then.\n</think>\n\nLet me look.\n"
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
)
BROKEN = 'So: <tool_call>{"name": }</tool_call> and on.'


def test_the_table_names_every_family():
    table = ferrule("dialects")
    data = json.loads(ferrule("dialects", "--json").stdout)
    assert table.returncode == 0
    names = [family["name"] for family in data]
    assert {"hermes", "nanochat"} <= set(names)
    assert all(name in table.stdout for name in names)
    assert all(line == line.rstrip() for line in table.stdout.splitlines())
    assert f"{len(names)} families" in table.stdout
    framed = {family["name"]: family["turns"] for family in data}
    assert framed["hermes"] == ["hermes", "qwen25", "hermes3", "qwen3_nothink", "qwen3_vl", "qwq"]
    assert (framed["nanochat"], framed["react"]) == (["nanochat"], [])


def test_people_see_text_and_calls(tmp_path):
    file = tmp_path / "said.txt"
    file.write_text(TEXT)
    done = ferrule("parse", "--dialect", "hermes", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Paris, then.", "Let me look.", "▸ weather  Paris"]


def test_the_last_line_is_ended(tmp_path):
    file = tmp_path / "said.txt"
    file.write_text("No line end")
    assert ferrule("parse", "--dialect", "hermes", file).stdout == "No line end\n"


def test_programs_see_events_whose_spans_tile_the_text(tmp_path):
    file = tmp_path / "said.txt"
    file.write_text(TEXT)
    events = [json.loads(line) for line in ferrule("parse", "--dialect", "hermes", "--json", file).stdout.splitlines()]
    assert [e["event"] for e in events if e["event"] in ("reasoning", "text", "call")] == ["reasoning", "text", "call"]
    assert events[-1]["arguments"] == {"city": "Paris"}
    position = 0
    for event in events:
        assert event["span"][0] == position
        position = event["span"][1]
    assert position == len(TEXT)


def test_a_files_line_ends_stay_as_they_are(tmp_path):
    file = tmp_path / "said.txt"
    file.write_bytes(b"a\r\nb")
    [event] = map(json.loads, ferrule("parse", "--dialect", "hermes", "--json", file).stdout.splitlines())
    assert event == {"event": "text", "text": "a\r\nb", "span": [0, 4]}


def test_every_line_for_programs_is_json():
    def refuse(constant):
        raise ValueError(constant)

    text = '<tool_call>{"name": "f", "arguments": {"n": 1e999}}</tool_call>'
    lines = ferrule("parse", "--dialect", "hermes", "--json", "-", typed=text).stdout.splitlines()
    assert [json.loads(line, parse_constant=refuse) for line in lines][-1]["arguments"] == '{"n": 1e999}'


def test_tools_of_an_mcp_server_decide_as_well(tmp_path):
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"zip": {"type": "string"}}}
    tools.write_text(json.dumps({"tools": [{"name": "f", "inputSchema": schema}]}))
    text = "<tool_call>f<arg_key>zip</arg_key><arg_value>01234</arg_value></tool_call>"
    done = ferrule("parse", "--dialect", "glm47", "--tools", tools, "--json", "-", typed=text)
    assert json.loads(done.stdout.splitlines()[-1])["arguments"] == {"zip": "01234"}


def test_what_cannot_be_read_is_shown_in_its_place_and_told_by_the_status():
    done = ferrule("parse", "--dialect", "hermes", "-", typed=BROKEN)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "So: ",
        '✗ not a call (invalid_json): <tool_call>{"name": }</tool_call>',
        " and on.",
    ]


def test_standard_input_is_read_as_it_comes():
    command = [*COMMAND, "parse", "--dialect", "hermes", "--json", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **pipes) as process:
        process.stdin.write("Hello, ")
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        assert process.poll() is None
        process.stdin.close()
        process.wait(30)
    assert first == {"event": "text", "text": "Hello, ", "span": [0, 7]}


def test_tools_decide_whether_a_repair_is_accepted(tmp_path):
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "weather", "parameters": schema}}]))
    text = TEXT.replace('"Paris"', "'Paris'")
    options = ("parse", "--dialect", "hermes", "--tools", tools)
    assert "(repaired: single_quotes)" in ferrule(*options, "-", typed=text).stdout
    assert ferrule(*options, "--no-repair", "-", typed=text).returncode == 1
    assert ferrule(*options, "-", typed=text.replace("city", "town")).returncode == 1


@pytest.mark.parametrize(
    ("tools", "wrong"),
    [
        ("{", "not valid JSON"),
        ("3", "must be a list of tools"),
        ('[{"x": 1}]', "tool 1 has no name"),
        ("[3]", "tool 1 has no name"),
    ],
)
def test_a_wrong_tools_file_is_one_clear_line(tmp_path, tools, wrong):
    file = tmp_path / "tools.json"
    file.write_text(tools)
    done = ferrule("parse", "--dialect", "hermes", "--tools", file, "-", typed="x")
    assert done.returncode == 2
    assert wrong in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_family_names_those_there_are():
    done = ferrule("parse", "--dialect", "hermmes", "-", typed="x")
    assert done.returncode == 2
    assert "hermes" in done.stderr


@pytest.mark.parametrize("columns", [110, 80, 60, 30])
def test_no_word_is_broken_on_a_narrow_terminal(columns: int) -> None:
    families = json.loads(ferrule("dialects", "--json").stdout)
    with Terminal("dialects", COLUMNS=str(columns)) as terminal:
        assert terminal.ended() == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", terminal.shown)
    words = {word.rstrip(",") for word in shown.split()}
    assert {family["name"] for family in families} <= words
    assert {name for family in families for name in family["turns"]} <= words
    assert {word.rstrip(",") for family in families for word in family["models"].split()} <= words
    assert max(map(len, shown.splitlines())) <= columns
