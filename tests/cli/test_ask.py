"""`ferrule ask`, on models that were trained for it: what is shown, and what is refused."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from terminals import COMMAND, Terminal, assert_refused, environment, ferrule, interrupted

from absent_path import NOWHERE

QUESTION = "What is 123456 * 789?"
ANSWER = "▸ calculator  123456 * 789  →  97406784\n123,456 × 789 is 97,406,784.\n"


def test_the_call_and_the_answer_are_shown(reckoner: str) -> None:
    done = ferrule("ask", QUESTION, "--model", reckoner)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER, "")


def test_the_question_may_come_through_a_pipe(reckoner: str) -> None:
    assert ferrule("ask", "-", "--model", reckoner, typed=f"{QUESTION}\n").stdout == ANSWER


def test_an_error_of_the_tool_is_shown_as_one(reckoner: str) -> None:
    done = ferrule("ask", "Divide 1 by 0.", "--model", reckoner)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "▸ calculator  1 / 0  →  error: division by zero",
        "Nothing can be divided by zero.",
    ]


def test_events_as_json(reckoner: str) -> None:
    done = ferrule("ask", QUESTION, "--model", reckoner, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert 0.5 < events[0].pop("confidence") <= 1
    assert events[0] == {
        "event": "call",
        "id": "call_1",
        "name": "calculator",
        "arguments": {"expression": "123456 * 789"},
    }
    assert {"event": "result", "id": "call_1", "name": "calculator", "status": "ok", "text": "97406784"} in events
    said = "".join(event["text"] for event in events if event["event"] == "text")
    assert said == events[-1]["answer"] == "123,456 × 789 is 97,406,784."
    assert (events[-1]["event"], events[-1]["reason"]) == ("finished", "done")
    assert events[-1]["tokens"]["cached"] > 0


def test_a_terminal_gets_colours_and_the_same_words(reckoner: str) -> None:
    with Terminal("ask", QUESTION, "--model", reckoner) as terminal:
        terminal.expect("▸ calculator  123456 * 789  →  97406784")
        terminal.expect("123,456 × 789 is 97,406,784.")
        assert terminal.ended() == 0
        assert "\x1b[32m97406784" in terminal.shown


def test_no_colours_where_they_are_not_wanted(reckoner: str) -> None:
    with Terminal("ask", QUESTION, "--model", reckoner, NO_COLOR="1") as terminal:
        assert terminal.ended() == 0
        assert "\x1b[32m" not in terminal.shown


def test_every_call_is_in_the_journal(reckoner: str, tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    ferrule("ask", QUESTION, "--model", reckoner, "--journal", journal)
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["started", "finished"]
    assert entries[0]["arguments"] == {"expression": "123456 * 789"}


def test_a_policy_is_obeyed(reckoner: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\ntool = "calculator"\naction = "deny"\nreason = "think for yourself"\n')
    done = ferrule("ask", QUESTION, "--model", reckoner, "--policy", policy, "--yes", "--max-tokens", "40")
    assert "→  error: denied: think for yourself" in done.stdout
    assert "nobody could be asked" not in done.stderr


def test_a_rule_for_an_unknown_tool_is_a_notice_printed_once(reckoner: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\ntool = "calcluator"\naction = "deny"\n')
    notice = "ferrule: the rule deny for 'calcluator' matches no tool; did you mean calculator?\n"
    assert ferrule("ask", QUESTION, "--model", reckoner, "--policy", policy).stderr == notice
    assert ferrule("chat", "--model", reckoner, "--policy", policy, typed=f"{QUESTION}\n{QUESTION}\n").stderr == notice


def test_a_limit_is_told_and_the_status_is_1(chatterer: str) -> None:
    done = ferrule("ask", "Hello", "--model", chatterer, "--max-tokens", "5")
    assert (done.returncode, done.stderr) == (1, "ferrule: stopped: the answer reached its limit of tokens\n")


def test_the_same_seed_says_the_same(chatterer: str) -> None:
    options = ("ask", "Hello", "--model", chatterer, "--max-tokens", "12", "--temperature", "1", "--seed")
    first, again, other = (ferrule(*options, seed).stdout for seed in ("1", "1", "2"))
    assert first == again != other


def test_tools_that_the_model_cannot_use_are_told_before_it_writes(reckoner: str, tool_folder: Path) -> None:
    done = ferrule("ask", QUESTION, "--model", reckoner, "--tools", tool_folder)
    assert_refused(done, "can only use calculator, not shout, picture, wait")


def test_where_nobody_can_be_asked_a_call_is_denied_and_the_way_out_is_told(waiter: str, waiting_folder: Path) -> None:
    done = ferrule("ask", "Wait.", "--model", waiter, "--tools", waiting_folder, "--max-tokens", "60")
    assert "▸ wait  seconds=1  →  error: denied" in done.stdout
    assert "--yes" in done.stderr


def test_yes_answers_for_the_person(waiter: str, waiting_folder: Path) -> None:
    done = ferrule("ask", "Wait.", "--model", waiter, "--tools", waiting_folder, "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "▸ wait  seconds=1  →  waited\nI waited.\n", "")


def test_what_a_tool_prints_is_not_among_the_events(waiter: str, waiting_folder: Path, tmp_path: Path) -> None:
    source = (waiting_folder / "wait_tool.py").read_text(encoding="utf-8")
    noisy = source.replace("await asyncio.sleep(seconds / 10)", "print('noise')")
    assert noisy != source
    (tmp_path / "wait_tool.py").write_text(noisy, encoding="utf-8")
    done = ferrule("ask", "Wait.", "--model", waiter, "--tools", tmp_path, "--yes", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()][-1]["answer"] == "I waited."
    assert done.stderr == "noise\n" * 10


def test_a_person_is_asked_and_may_edit(waiter: str, waiting_folder: Path) -> None:
    with Terminal("ask", "Wait.", "--model", waiter, "--tools", waiting_folder, "--max-tokens", "60") as terminal:
        terminal.expect("▸ wait asks to run")
        terminal.expect("this session (every call of wait)?")
        terminal.type('e {"seconds": 0.2}\r')
        terminal.expect("▸ wait asks to run, edited")
        terminal.expect("?")
        terminal.type("y\r")
        terminal.expect("▸ wait  seconds=0.2  (edited by you)  →  waited")
        terminal.ended()


def test_progress_is_shown_while_a_tool_runs(waiter: str, waiting_folder: Path) -> None:
    with Terminal("ask", "Wait.", "--model", waiter, "--tools", waiting_folder, "--yes") as terminal:
        terminal.expect("▸ wait  seconds=1    … 50% waiting")
        terminal.expect("▸ wait  seconds=1  →  waited")
        assert terminal.ended() == 0


def test_control_c_stops_at_once_and_quietly(chatterer: str) -> None:
    arguments = [*COMMAND, "ask", "Hello", "--model", chatterer]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        process.stdout.read(3)
        assert interrupted(process) == (130, "")


def test_control_c_while_a_tool_runs(waiter: str, waiting_folder: Path, tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    options = ("ask", "Wait.", "--model", waiter, "--tools", waiting_folder, "--yes", "--journal", journal)
    with Terminal(*options) as terminal:
        terminal.expect("waiting")
        terminal.type("\x03")
        assert terminal.ended() == 130
        assert "Traceback" not in terminal.shown
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["started", "finished"]
    assert entries[-1]["status"] == "cancelled"


def test_a_reader_that_goes_away_is_no_error(chatterer: str) -> None:
    arguments = [*COMMAND, "ask", "Hello", "--model", chatterer, "--max-tokens", "3000"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(2)
        process.stdout.close()
        began = time.monotonic()
        assert process.stderr.read() == b""
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ask", ""), ("question is empty",)),
        (("ask", "hi", "--model", "gpt"), ("unknown model 'gpt'",)),
        (("ask", "hi", "--model", f"local:{NOWHERE}"), (NOWHERE, "config.json")),
        (("ask", "hi", "--tools", NOWHERE), (NOWHERE,)),
        (("ask", "hi", "--policy", NOWHERE), (NOWHERE, "No such file")),
        (("ask", "hi", "--journal", "/dev/null/calls"), ("/dev/null",)),
        (("chat", "--model", "gpt"), ("unknown model 'gpt'",)),
        (("ask", "hi", "--model", "gpt-4o"), ("'gpt-4o'; did you mean openai:gpt-4o?",)),
        (("ask", "hi", "--model", "claude"), ("'claude'; did you mean anthropic:MODEL?",)),
        (("ask", "hi", "--model", "opnai:"), ("'opnai:'; did you mean openai:MODEL?",)),
        (("ask", "hi", "--model", "qwen3:8b"), ("did you mean ollama:qwen3:8b?",)),
        (("ask", "hi", "--model", "anthropic/claude-x"), ("did you mean anthropic:claude-x?",)),
        (("ask", "hi", "--model", "embeded"), ("'embeded'; did you mean embedded?",)),
        (("ask", "hi", "--model", "local"), ("'local' names no model: add one after the colon, local:FOLDER",)),
        (("ask", "hi", "--mode", "qwen3"), ("unknown notation 'qwen3'; did you mean hermes (Qwen 3)?",)),
        (("ask", "hi", "--mode", "atuo"), ("unknown mode 'atuo'; did you mean auto?",)),
        (("ask", "hi", "--journal", f"{NOWHERE}/calls"), ("there is no folder",)),
        (("ask", "hi", "--store", f"{NOWHERE}/kept.db"), ("there is no folder",)),
    ],
)
def test_bad_input_is_one_clear_line(arguments: tuple[str, ...], words: tuple[str, ...], reckoner: str) -> None:
    model = () if "--model" in arguments else ("--model", reckoner)
    assert_refused(ferrule(*arguments, *model), *words)


def test_a_traceback_for_those_who_ask_for_it() -> None:
    done = ferrule("ask", "hi", "--model", "gpt", FERRULE_DEBUG="1")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1].startswith("ferrule: unknown model 'gpt'")


def test_input_that_is_not_utf_8_is_refused(reckoner: str) -> None:
    assert_refused(ferrule("ask", "-", "--model", reckoner, typed=b"\xff\xfe"), "standard input", "UTF-8")


def test_what_was_recorded_is_answered_again_without_the_model(tmp_path) -> None:
    path = tmp_path / "talk.jsonl"
    first = ferrule("ask", "What is 12 * 34?", "--record", path)
    again = ferrule("ask", "What is 12 * 34?", "--record", path, FERRULE_RECORD="replay")
    assert first.stdout == again.stdout
    assert first.stdout.endswith("12 × 34 is 408.\n")
    other = ferrule("ask", "What is 12 * 35?", "--record", path, FERRULE_RECORD="replay")
    assert other.returncode == 2
    assert other.stderr.startswith(f"ferrule: {path} holds no answer of embedded to this request. The nearest of 2")
    assert "differs: message 0 (user): recorded 'What is 12 * 34?', now 'What is 12 * 35?'" in other.stderr
    assert len(other.stderr.splitlines()) == 1
