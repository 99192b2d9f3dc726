"""`ferrule tools` and `ferrule call`: what is offered, what is wrong, and calls from the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminals import COMMAND, Terminal, assert_refused, ferrule

from absent_path import NOWHERE
from ferrule.cli.tool_options import parse_tool_options
from ferrule.errors import SettingsError

SOUND = """\
from ferrule import ToolExample, Toolset, tool


@tool(examples=[ToolExample({"text": "hi"}, "HI"), {"text": "there"}])
def shout(text: str) -> str:
    '''Shout.

    Args:
        text: What to shout.
    '''
    return text.upper()

class Sums(Toolset):
    @tool(examples=[{"a": 1, "b": 0}])
    async def add(self, a: int, b: int = 0) -> int:
        '''Add.

        :param a: one number
        :param b: another
        '''
        return a + b
"""


def test_tools_lists_names_parameters_annotations_and_origins(tool_folder: Path) -> None:
    shown = ferrule("tools", tool_folder).stdout
    assert "calculator  (from code, reads only, idempotent, closed world)" in shown
    assert "shout  (from project, reads only)\n  Shout a text.\n" in shown
    assert "    --text  (string, required)  What to shout\n" in shown
    assert "    --times  (integer, default 1)\n" in shown
    assert "    --marks  (array|null, default null)\n" in shown
    assert "picture  (from project, always asks)" in shown


VALUES = '''
from datetime import date
from enum import Enum
from typing import Literal
from ferrule import tool


class Room(Enum):
    KITCHEN = "kitchen"
    BATH = "bath"


@tool
def heat(
    room: Room,
    others: list[Room],
    level: Literal[1, 2] | None,
    until: date,
    free: Literal["low"] | float,
    many: Literal["a", "b", "c", "d", "e", "f", "g", "h", "i"] = "a",
    seconds: float = float("inf"),
    anything: object = object(),
    degrees: int = "three",
):
    """Heat."""
'''


def test_tools_lists_the_values_that_a_parameter_takes_and_no_wrong_default(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(VALUES)
    assert ferrule("tools", tmp_path / "heat.py").stdout.splitlines()[-9:] == [
        "    --room  (string, one of kitchen|bath, required)",
        "    --others  (array, each one of kitchen|bath, required)",
        "    --level  (integer|null, one of 1|2, required)",
        "    --until  (string, date YYYY-MM-DD, required)",
        "    --free  (number|string, required)",
        '    --many  (string, one of a|b|c|d|e|f|g|h|…, default "a")',
        "    --seconds  (number, optional)",
        "    --anything  (any, optional)",
        '    --degrees  (integer, default "three")',
    ]


def test_check_finds_a_default_that_does_not_fit_its_type(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(VALUES)
    lines = ferrule("tools", "check", tmp_path / "heat.py").stdout.splitlines()
    assert [line.partition(": ")[2] for line in lines if "the default" in line] == [
        "the default of 'degrees' of heat is the string \"three\", which doesn't fit its type: an integer"
    ]


def test_a_tool_of_the_calculators_name_is_refused_with_the_option_that_leaves_it_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from ferrule import tool\n@tool(read_only=True)\ndef calculator(x: str) -> str:\n    'It.'\n")
    refused = ferrule("ask", "hi", "--model", "echo", "--tools", file)
    assert_refused(
        refused, "two tools are named 'calculator'", f"({file}:2)", "leave ferrule's out with --no-calculator"
    )
    assert ferrule("ask", "hi", "--model", "echo", "--tools", file, "--no-calculator").returncode == 0


def test_tools_as_json_gives_schemas(tool_folder: Path) -> None:
    listed = {entry["name"]: entry for entry in json.loads(ferrule("tools", tool_folder, "--json").stdout)}
    assert list(listed) == ["calculator", "shout", "picture", "wait"]
    assert listed["calculator"]["annotations"]["read_only"] is True
    assert listed["shout"]["parameters"]["properties"]["text"]["type"] == "string"
    assert listed["picture"]["approval"] == "always"


def test_check_is_silent_about_sound_files(tmp_path: Path) -> None:
    (tmp_path / "sound_tool.py").write_text(SOUND)
    for path in (tmp_path, tmp_path / "sound_tool.py"):
        done = ferrule("tools", "check", path)
        assert (done.returncode, done.stdout) == (0, "2 tools on offer, no problems\n")


def test_check_reports_all_problems_at_once_and_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "a_sound_tool.py").write_text(SOUND)
    (tmp_path / "bad_tool.py").write_text("import no_such_module\n")
    (tmp_path / "empty_tool.py").write_text("")
    (tmp_path / "mine_tool.py").write_text(
        "from ferrule import tool\n\n"
        "@tool\ndef calculator(x: int) -> int:\n    return x\n\n"
        "@tool(examples=[{'text': 1}])\ndef shout(text: str) -> str:\n    'Shout.'\n    return text\n"
    )
    done = ferrule("tools", "check", tmp_path)
    assert done.returncode == 1
    assert done.stdout.replace(f"{tmp_path}/", "").splitlines() == [
        "bad_tool.py: ModuleNotFoundError: No module named 'no_such_module' (line 1)",
        "empty_tool.py: it defines no tool: mark a function @tool, or write a Toolset",
        "mine_tool.py:3: calculator has no description; write a docstring",
        "mine_tool.py:3: the parameter 'x' of calculator has no description; describe it in the docstring",
        "mine_tool.py:3: the name 'calculator' is taken by ferrule itself; give another by name=",
        "mine_tool.py:7: the parameter 'text' of shout has no description; describe it in the docstring",
        (
            "mine_tool.py:7: example 1 of shout: Wrong arguments: text: got the number 1; "
            'expected a string, in quotes: "1"'
        ),
        "mine_tool.py:7: the name 'shout' is taken by a_sound_tool.py:4; give another by name=",
        "2 tools on offer, 8 problems",
    ]
    rows = json.loads(ferrule("tools", "check", tmp_path, "--json").stdout)
    assert rows["tools"] == ["shout", "add"]
    assert [row["line"] for row in rows["problems"]] == [None, None, 3, 3, 3, 7, 7, 7]
    (tmp_path / "mine_tool.py").unlink()
    listed = ferrule("tools", tmp_path)
    assert listed.returncode == 0
    assert "shout  (from project)" in listed.stdout
    assert len(listed.stderr.splitlines()) == 2


def test_check_names_a_file_that_cannot_be_loaded_once(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    for name, reason in (("empty.py", "it defines no tool: mark"), ("notes.txt", "not a Python file: tools are")):
        done = ferrule("tools", "check", tmp_path / name)
        assert done.returncode == 1
        assert done.stdout.startswith(f"{tmp_path / name}: {reason}")


def test_check_runs_the_examples_under_the_policy_and_compares_results(tmp_path: Path) -> None:
    (tmp_path / "sound_tool.py").write_text(SOUND)
    done = ferrule("tools", "check", tmp_path, "--run", "--yes", "--journal", tmp_path / "calls.jsonl")
    assert (done.returncode, done.stdout) == (0, "2 tools on offer, 3 examples run, no problems\n")
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 6
    denied = ferrule("tools", "check", tmp_path, "--run")
    assert denied.returncode == 1
    assert "sound_tool.py:4: example 1 of shout: denied: this call needs approval, and nobody can" in denied.stdout
    (tmp_path / "sound_tool.py").write_text(SOUND.replace("text.upper()", "text").replace("a + b", "a // b"))
    wrong = ferrule("tools", "check", tmp_path, "--run", "--yes")
    assert wrong.returncode == 1
    assert wrong.stdout.replace(f"{tmp_path}/", "").splitlines() == [
        "sound_tool.py:4: example 1 of shout: expected 'HI', got 'hi'",
        "sound_tool.py:14: example 1 of add: ZeroDivisionError: integer division or modulo by zero",
        "2 tools on offer, 3 examples run, 2 problems",
    ]
    for words in (("tools", "--run"), ("tools", "check", tmp_path, "--yes")):
        refused = ferrule(*words)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


def test_call_prints_the_result() -> None:
    assert ferrule("call", "calculator", "--expression", "2+2").stdout == "4\n"
    assert ferrule("call", "calculator", "--expression=0.1 + 0.2").stdout == "0.3\n"
    assert ferrule("call", "--json-arguments", '{"expression": "-3 * 2"}', "calculator").stdout == "-6\n"
    assert ferrule("call", "calculator", "--expression", "-3 * 2").stdout == "-6\n"


def test_a_failed_call_goes_to_stderr_and_the_status_is_1() -> None:
    done = ferrule("call", "calculator", "--expression", "1/0")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: division by zero\n")


def test_arguments_take_the_types_of_the_schema(tool_folder: Path) -> None:
    options = ("--text", "123", "--times", "2", "--marks", "!", "--marks", "?", "--be-kind", "--tone=soft")
    done = ferrule("call", "--tools", tool_folder, "--yes", "shout", *options)
    assert json.loads(done.stdout) == {"text": "123123", "marks": ["!", "?"], "tone": "soft", "be_kind": True}


OWN_NAMES = """
from ferrule import tool

@tool
def wait(timeout: int, out: str, json: bool = False, yes: bool = False, trust: str = "") -> str:
    \"""Wait.\"""
    return f"{timeout} {out} {json} {yes} {trust}"
"""


def test_what_follows_the_tool_is_the_tools(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_NAMES)
    words = ("--timeout", "7", "--out", "--help", "--json", "--yes", "--trust=--policy")
    done = ferrule("call", "--tools", file, "--yes", "wait", *words)
    assert (done.stdout, done.stderr) == ("7 --help True True --policy\n", "")
    assert "denied: this call needs approval" in ferrule("call", "--tools", file, "wait", *words).stderr
    served = shlex.join([*COMMAND, "mcp", "serve", "--yes", str(file)])
    assert ferrule("mcp", "call", "--yes", served, "wait", *words).stdout == done.stdout
    misplaced = ferrule("mcp", "call", "--yes", served, "wait", "--journal", tmp_path / "calls")
    assert misplaced.returncode == 2
    assert misplaced.stderr.splitlines()[-1] == (
        "ferrule: wait has no argument --journal; options of `ferrule mcp call` go before SERVER: "
        "ferrule mcp call --journal …"
    )
    assert not (tmp_path / "calls").exists()
    unknown = ferrule("call", "wait", "--tools", file)
    assert unknown.stderr == (
        "ferrule: unknown tool 'wait'; on offer: calculator; options of `ferrule call` go before the tool: "
        "ferrule call --tools …\n"
    )


def test_call_as_json_and_journal(tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    done = ferrule("call", "--json", "--journal", journal, "calculator", "--expression", "1/0")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"name": "calculator", "status": "error", "text": "error: division by zero"}
    assert [json.loads(line)["event"] for line in journal.read_text().splitlines()] == ["started", "finished"]


def test_a_call_that_needs_approval_is_denied_where_nobody_can_give_it(tool_folder: Path) -> None:
    done = ferrule("call", "--tools", tool_folder, "picture")
    assert done.returncode == 1
    assert "denied" in done.stderr
    assert "--yes" in done.stderr


def test_a_person_can_say_no_with_a_reason(tool_folder: Path) -> None:
    with Terminal("call", "--tools", tool_folder, "picture") as terminal:
        terminal.expect("▸ picture asks to run")
        terminal.expect("[y]es")
        terminal.type("n not today\r")
        terminal.expect("denied: not today")
        assert terminal.ended() == 1


def test_images_are_described_or_written(tool_folder: Path, tmp_path: Path) -> None:
    options = ("call", "--tools", tool_folder, "--yes")
    described = ferrule(*options, "picture").stdout.splitlines()
    assert described[0] == "a dot"
    assert described[1].startswith("[image/png, 20 bytes, ")
    written = Path(ferrule(*options, "--out", tmp_path / "images", "picture").stdout.splitlines()[1])
    assert written.read_bytes() == b"not really a picture"
    assert written.stem in described[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("call", "calc", "--expression", "1"), ("unknown tool 'calc'", "calculator")),
        (("call", "calculator"), ("expression", "expected a string")),
        (("call", "calculator", "--expression"), ("--expression needs a value",)),
        (("call", "calculator", "2+2"), ("'2+2'", "--name value")),
        (("call", "calculator", "--expression", "1", "--expression", "2"), ("given twice",)),
        (
            ("call", "--json-arguments", '{"expression": "2"}', "calculator", "--expression", "1"),
            ("--expression is given twice", "--json-arguments"),
        ),
        (("call", "calculator", "--expression", "1", "--style", "odd"), ("style",)),
        (("call", "--json-arguments", "{", "calculator"), ("--json-arguments", "not valid JSON")),
        (("call", "--json-arguments", "[1]", "calculator"), ("--json-arguments", "object")),
        (("call", "--tools", NOWHERE, "calculator", "--expression", "1"), (NOWHERE,)),
        (("call", "--toolz", NOWHERE, "calculator"), ("unknown option --toolz", "--tools?")),
        (("call", "calculator", "--expression", "1", "--yes"), ("calculator has no argument --yes", "before the tool")),
        (("call", "calculator", "--json"), ("ferrule call --json …",)),
        (("call", "calculator", "--help"), ("calculator has no argument --help",)),
        (("call", "calculator", "--json-arguments={}"), ("calculator has no argument --json-arguments;",)),
        (("mcp", "call", "no-server", "--yes", "echo"), ("the name of a tool goes after SERVER, not --yes",)),
        (("tools", NOWHERE), (NOWHERE,)),
        (("tools", "check", NOWHERE), (NOWHERE,)),
    ],
)
def test_bad_input_is_one_clear_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(ferrule(*arguments), *words)


SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "number": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "many": {"type": "array", "items": {"type": "integer"}},
        "flag": {"type": "boolean"},
        "point": {"$ref": "#/$defs/Point"},
        "some_name": {"enum": ["1", "2"]},
    },
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["--text", "7"], {"text": "7"}),
        (["--text", "--flag"], {"text": "--flag"}),
        (["--number", "7"], {"number": 7}),
        (["--number=seven"], {"number": "seven"}),
        (["--number", "null"], {"number": None}),
        (["--either", "7"], {"either": "7"}),
        (["--many", "1", "--many=2"], {"many": [1, 2]}),
        (["--many", "[1, 2]"], {"many": [1, 2]}),
        (["--flag"], {"flag": True}),
        (["--no-flag"], {"flag": False}),
        (["--flag", "False", "--text", ""], {"flag": False, "text": ""}),
        (["--point", '{"x": 1}'], {"point": {"x": 1}}),
        (["--some-name", "1"], {"some_name": "1"}),
        (["--strange", "[1]"], {"strange": [1]}),
    ],
)
def test_options_become_arguments(words: list[str], arguments: dict[str, object]) -> None:
    assert parse_tool_options(words, SCHEMA) == arguments


@given(st.text())
def test_text_arrives_as_it_was_typed(text: str) -> None:
    assert parse_tool_options(["--text", text], SCHEMA) == {"text": text}
    assert parse_tool_options([f"--text={text}"], SCHEMA) == {"text": text}


@given(st.lists(st.text(max_size=6) | st.sampled_from(["--flag", "--many", "--text", "--number=[", "--=", "--"])))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        arguments = parse_tool_options(words, SCHEMA)
    except SettingsError:
        return
    json.dumps(arguments)


def test_a_call_is_not_told_of_rules_for_other_tools(tool_folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    rules = '[[rules]]\ntool = "picture"\naction = "deny"\n[[rules]]\ntool = "shuot"\naction = "deny"\n'
    policy.write_text(f'trusted = ["project"]\n{rules}', encoding="utf-8")
    done = ferrule("call", "--tools", tool_folder, "--policy", policy, "shout", "--text", "hi")
    assert json.loads(done.stdout)["text"] == "HI"
    assert done.stderr == "ferrule: the rule deny for 'shuot' matches no tool; did you mean shout?\n"


def test_a_word_that_is_no_option_is_refused_with_both_ways_to_give_arguments() -> None:
    assert_refused(ferrule("call", "calculator", "3"), "'3' is not an option", "--name value", "--json-arguments '{…}'")


NOISY = '''
import asyncio
from ferrule import tool
print("imported")

@tool(read_only=True)
def shout(text: str) -> str:
    """Shout."""
    print("in a thread")
    return text.upper()

@tool(read_only=True)
async def whisper(text: str) -> str:
    """Whisper."""
    print("in the loop")
    await asyncio.sleep(0)
    print("and again")
    return text.lower()
'''


def test_what_tools_print_goes_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "noisy_tool.py").write_text(NOISY, encoding="utf-8")
    for name, printed in (("shout", ["in a thread"]), ("whisper", ["in the loop", "and again"])):
        done = ferrule("call", "--tools", tmp_path, "--yes", "--json", name, "--text", "Hi")
        assert json.loads(done.stdout)["status"] == "ok"
        assert done.stderr.splitlines() == ["imported", *printed]
    assert json.loads(ferrule("tools", tmp_path, "--json").stdout)


RAISING = '''
from ferrule import ToolFailed, tool


@tool(read_only=True)
def find(name: str) -> str:
    """Find somebody."""
    return {"Ann": "here"}[name]

@tool(read_only=True)
async def find_async(name: str) -> str:
    """Find somebody."""
    return find(name)

@tool(read_only=True, isolate="process")
def find_elsewhere(name: str) -> str:
    """Find somebody."""
    return {"Ann": "here"}[name]

@tool(read_only=True)
def refuse(name: str) -> str:
    """Find nobody."""
    raise ToolFailed(f"no {name}")
'''


@pytest.mark.parametrize("name", ["find", "find_async", "find_elsewhere"])
def test_a_traceback_of_a_tool_begins_in_its_own_code(name: str, tmp_path: Path) -> None:
    file = tmp_path / "raising.py"
    file.write_text(RAISING, encoding="utf-8")
    call = ("call", "--tools", file, name, "--name", "Bob")
    assert ferrule(*call).stderr == "error: KeyError: 'Bob'\n"
    lines = ferrule(*call, FERRULE_DEBUG="1").stderr.splitlines()
    assert lines[:2] == [f"the tool {name} raised", "Traceback (most recent call last):"]
    assert lines[2].endswith(
        f'raising.py", line {RAISING[: RAISING.index(f"def {name}(")].count(chr(10)) + 3}, in {name}'
    )
    assert lines[-2:] == ["KeyError: 'Bob'", "error: KeyError: 'Bob'"]


def test_what_a_tool_tells_the_model_has_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "raising.py"
    file.write_text(RAISING, encoding="utf-8")
    done = ferrule("call", "--tools", file, "refuse", "--name", "Bob", FERRULE_DEBUG="1")
    assert done.stderr == "error: no Bob\n"


def test_a_long_result_is_printed_whole(tmp_path: Path) -> None:
    source = (
        "from ferrule import tool\n\n\n@tool(read_only=True)\ndef rows(n: int) -> list[int]:\n"
        '    """List numbers."""\n    return list(range(n))\n'
    )
    (tmp_path / "rows_tool.py").write_text(source, encoding="utf-8")
    done = ferrule("call", "--tools", tmp_path / "rows_tool.py", "rows", "--n", "20000")
    assert json.loads(done.stdout) == [*range(20_000)]
    as_json = ferrule("call", "--json", "--tools", tmp_path / "rows_tool.py", "rows", "--n", "20000")
    assert json.loads(json.loads(as_json.stdout)["text"]) == [*range(20_000)]


LOOK = '''
from ferrule import tool


@tool
def look(at: str) -> str:
    """Look.

    Args:
        at: Where to look.
    """
    return at
'''


def test_check_finds_broken_contracts_and_passes_additions(tmp_path: Path) -> None:
    file = tmp_path / "look_tool.py"
    file.write_text(LOOK)
    old = tmp_path / "old.json"
    old.write_text(ferrule("tools", tmp_path, "--json").stdout)
    same = ferrule("tools", "check", tmp_path, "--against", old)
    assert (same.returncode, same.stdout) == (0, "1 tool on offer, no problems\n")
    file.write_text(
        LOOK.replace("at: str)", "at: str | int, closely: bool = False)").replace(
            "look.", "look.\n        closely: How."
        )
    )
    assert ferrule("tools", "check", tmp_path, "--against", old).returncode == 0
    file.write_text(LOOK.replace("at: str)", "at: int)").replace("return at", "return str(at)"))
    broken = ferrule("tools", "check", tmp_path, "--against", old)
    assert broken.returncode == 1
    assert f"{old}: look: at no longer accepts string" in broken.stdout
    file.unlink()
    gone = ferrule("tools", "check", tmp_path, "--against", old, "--json")
    empty, lost = json.loads(gone.stdout)["problems"]
    assert empty["reason"] == "no file in this folder has a name that ends with _tool.py"
    assert lost == {"path": str(old), "line": None, "reason": "the tool look is gone"}


def test_check_against_a_list_with_the_calculator_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a_tool.py").write_text(
        "from ferrule import tool\n\n@tool\ndef a(x: int) -> int:\n    'A. x: it.'\n    return x\n"
    )
    (tmp_path / "old.json").write_text(ferrule("tools", "--json").stdout)
    done = ferrule("tools", "check", tmp_path / "a_tool.py", "--against", tmp_path / "old.json")
    assert done.returncode == 2
    assert "has only the calculator, which every list has; name the others when you write it" in done.stderr


def test_check_against_what_is_no_list_of_tools_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("3")
    done = ferrule("tools", "check", tmp_path, "--against", tmp_path / "old.json")
    assert (done.returncode, "not a list of tools" in done.stderr) == (2, True)
    assert "--against is for" in ferrule("tools", "--against", tmp_path / "old.json").stderr


def test_built_in_tools_can_be_checked_by_name() -> None:
    assert ferrule("tools", "check", "python").stdout == "1 tool on offer, no problems\n"
