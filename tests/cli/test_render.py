"""`ferrule render`: conversations as tokens, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memorised import HERMES_TOKENS, write_tokenizer
from terminals import Terminal, assert_refused, ferrule

from absent_path import NOWHERE

CONVERSATION = {
    "messages": [
        {"role": "user", "content": "What is 12 * 34?"},
        {
            "role": "assistant",
            "content": [
                {"type": "python", "text": "12 * 34"},
                {"type": "python_output", "text": "408"},
                {"type": "text", "text": "12 × 34 is 408."},
            ],
        },
    ]
}
SHOWN = (
    "<|bos|><|user_start|>What is 12 * 34?<|user_end|><|assistant_start|>⟦<|python_start|>12 * 34<|python_end|>⟧"
    "<|output_start|>408<|output_end|>⟦12 × 34 is 408.<|assistant_end|>⟧\n"
)
COUNTS = "\nnanochat: 1 conversation, 51 tokens, ⟦26 trained⟧, 25 not trained\n"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path)
    return path


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps(CONVERSATION, indent=2), encoding="utf-8")
    return path


def test_trained_tokens_stand_in_brackets(conversation: Path, tokenizer: Path) -> None:
    done = ferrule("render", conversation, "--tokenizer", tokenizer)
    assert (done.returncode, done.stdout, done.stderr) == (0, SHOWN + COUNTS, "")


def test_a_folder_names_its_tokenizer_and_standard_input_its_conversation(tokenizer: Path) -> None:
    done = ferrule("render", "-", "--tokenizer", tokenizer.parent, typed=json.dumps(CONVERSATION["messages"]))
    assert done.stdout == SHOWN + COUNTS


def test_lines_of_conversations(tokenizer: Path, tmp_path: Path) -> None:
    path = tmp_path / "conversations.jsonl"
    path.write_text(f"{json.dumps(CONVERSATION)}\n\n{json.dumps(CONVERSATION)}\n")
    done = ferrule("render", path, "--tokenizer", tokenizer)
    assert done.stdout == 2 * SHOWN + "\nnanochat: 2 conversations, 102 tokens, ⟦52 trained⟧, 50 not trained\n"


def test_a_line_separator_in_a_text_ends_no_line(tokenizer: Path, tmp_path: Path) -> None:
    said = {"messages": [{"role": "user", "content": "a\u2028b"}, {"role": "assistant", "content": "c\x85d"}]}
    path = tmp_path / "conversations.jsonl"
    path.write_text(f"{json.dumps(said, ensure_ascii=False)}\r\n" * 2, encoding="utf-8", newline="")
    done = ferrule("render", path, "--tokenizer", tokenizer)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("a\u2028b") == done.stdout.count("⟦c\x85d<|assistant_end|>⟧") == 2


def test_what_the_dialect_could_not_carry_is_told(tokenizer: Path, tmp_path: Path) -> None:
    thought = {"role": "assistant", "reasoning_content": "Hm.", "content": "Ho."}
    path = tmp_path / "conversations.jsonl"
    lines = ({"messages": [{"role": "user", "content": "Hi"}, one]} for one in (thought, CONVERSATION["messages"][1]))
    path.write_text("\n".join(map(json.dumps, lines)))
    done = ferrule("render", path, "--tokenizer", tokenizer)
    assert done.returncode == 0
    assert done.stderr == (
        "ferrule: conversation 1, not preserved in nanochat: reasoning: nanochat has no place for it\n"
    )


def test_a_conversation_that_the_dialect_refuses_is_numbered(tokenizer: Path, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    asked = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": [call]}]}
    path = tmp_path / "conversations.jsonl"
    path.write_text(f"{json.dumps(CONVERSATION)}\n{json.dumps(asked)}\n")
    done = ferrule("render", path, "--tokenizer", tokenizer)
    assert done.returncode == 2
    assert done.stderr == (
        "ferrule: conversation 2: this notation can only write calls of 'calculator', not of 'weather'\n"
    )


def test_json_holds_ids_mask_and_pieces(conversation: Path, tokenizer: Path) -> None:
    data = json.loads(ferrule("render", conversation, "--tokenizer", tokenizer, "--json").stdout)
    assert data["dialect"] == "nanochat"
    assert len(data["ids"]) == len(data["mask"]) == 51
    assert sum(data["mask"]) == 26
    assert (
        "".join(f"⟦{piece['text']}⟧" if piece["trained"] else piece["text"] for piece in data["pieces"]) == SHOWN[:-1]
    )


def test_two_colours_on_a_terminal(conversation: Path, tokenizer: Path) -> None:
    with Terminal("render", conversation, "--tokenizer", tokenizer) as terminal:
        assert terminal.ended() == 0
        assert "\x1b[32m<|python_start|>12 * 34<|python_end|>\x1b[0m" in terminal.shown
        assert "\x1b[90m<|output_start|>408<|output_end|>\x1b[0m" in terminal.shown
        assert "\x1b[32m26 trained\x1b[0m" in terminal.shown


def test_another_dialect_goes_by_its_tokenizer(conversation: Path, tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", HERMES_TOKENS)
    done = ferrule("render", conversation, "--tokenizer", tmp_path)
    assert '⟦<tool_call>\n{"name": "calculator", "arguments": {"expression": "12 * 34"}}\n</tool_call>' in done.stdout
    assert "\nhermes: 1 conversation" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("not JSON",)),
        ("{", ("not JSON",)),
        ("7", ("messages",)),
        ('{"messages": [{"role": "robot", "content": "x"}]}', ("message 0", "role")),
        ('{"messages": [{"role": "tool", "content": "x"}]}', ("message 0", "tool_call_id", "read as openai")),
        ('{"messages": []}\n{', (":2", "not JSON")),
        ('{"messages": []}\n{"messages": 7}', (":2", "messages")),
        (f'{{"messages": [{{"role": "user", "content": {"[" * 100_000}', ("not JSON",)),
    ],
)
def test_a_file_of_something_else_is_refused(
    text: str, words: tuple[str, ...], tokenizer: Path, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    assert_refused(ferrule("render", path, "--tokenizer", tokenizer), str(path), *words)


@pytest.mark.parametrize("dialect", ["nanochat-tools", "hermes", "glm47"])
def test_arguments_that_are_nested_too_deeply_are_refused(dialect: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {}
    for _ in range(300):
        arguments = {"a": arguments}
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    path = tmp_path / "deep.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]))
    assert_refused(ferrule("render", path, "--dialect", dialect), "conversation 1", "more than 200 levels deep")


def test_bad_bytes_and_missing_files_are_refused(conversation: Path, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert_refused(ferrule("render", tmp_path / "bytes.json", "--tokenizer", tokenizer), "bytes.json", "UTF-8")
    assert_refused(ferrule("render", f"{NOWHERE}.json", "--tokenizer", tokenizer), f"{NOWHERE}.json", "No such file")
    assert_refused(ferrule("render", tmp_path, "--tokenizer", tokenizer), "directory")
    assert_refused(ferrule("render", conversation, "--tokenizer", NOWHERE), NOWHERE)
    assert_refused(ferrule("render", conversation, "--tokenizer", conversation), str(conversation))
    assert_refused(
        ferrule("render", conversation, "--tokenizer", tokenizer, "--dialect", "klingon"), "klingon", "inkling"
    )


def test_a_family_with_turns_is_named(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", ("<|user|>", "<|assistant|>"))
    path = tmp_path / "asked.json"
    path.write_text(
        json.dumps({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]})
    )
    done = ferrule("render", path, "--tokenizer", tmp_path, "--dialect", "glm47")
    assert done.stdout.startswith("[gMASK]<sop><|user|>Hi<|assistant|><think>⟦</think>Ho<|user|>⟧\n")


def test_a_tokenizer_of_another_family_is_refused(conversation: Path, tokenizer: Path) -> None:
    for where in ([], ["--tokenizer", tokenizer]):
        done = ferrule("render", conversation, "--dialect", "hermes", *where)
        assert_refused(done, "conversation 1: this tokenizer has no control token for '<|im_end|>', '<|im_start|>'")
        assert "--tokenizer" in done.stderr


def test_what_a_row_says_of_training_is_honoured_and_not_called_ignored(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    assert ferrule("synth", rows, "--count", 160).returncode == 0
    untrained = [row for row in map(json.loads, rows.read_text().splitlines()) if '"trained": false' in json.dumps(row)]
    assert untrained, "none was drawn"
    rows.write_text("\n".join(map(json.dumps, untrained)))
    done = ferrule("render", rows)
    assert (done.returncode, done.stderr) == (0, "")
    withheld = [one["content"][0]["text"] for row in untrained for one in row["messages"] if "trained" in one]
    assert all(f"<|assistant_start|>{text}<|assistant_end|>" in done.stdout for text in withheld)
    untrained[0]["messages"][1]["trained"] = "no"
    rows.write_text(json.dumps(untrained[0]))
    assert_refused(ferrule("render", rows), "message 1: trained must be true or false, not 'no'")


def test_tools_are_rendered_and_what_has_no_place_is_named(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", HERMES_TOKENS)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "weather", "description": "The weather.", "parameters": schema}
    asked = {
        "model": "m",
        "tools": [{"type": "function", "function": function}],
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Hm.", "weight": 0}],
    }
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(asked))
    done = ferrule("render", path, "--tokenizer", tmp_path)
    assert done.returncode == 0
    assert '"name": "weather"' in done.stdout
    assert done.stderr == (
        f"ferrule: {path}: ignored, since a conversation can't hold it: model, weight of message 1\n"
    )
    path.write_text(json.dumps({**asked, "tools": [{"type": "web_search"}]}))
    refused = ferrule("render", path, "--tokenizer", tmp_path, "--format", "openai")
    assert_refused(refused, "tools[0] is not a function, so it can't be offered here: its type is 'web_search'")


def test_a_call_that_nobody_reads_is_told_of(tmp_path: Path) -> None:
    row = {"conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": '<tool_call>{"name": "f"'}]}
    file = tmp_path / "row.json"
    file.write_text(json.dumps(row))
    write_tokenizer(tmp_path / "tokenizer.json", HERMES_TOKENS)
    done = ferrule("render", file, "--tokenizer", tmp_path, "--dialect", "ovis")
    assert done.returncode == 0
    assert done.stderr == (
        'ferrule: conversation 1: message 1 has a malformed call, which is not trained: \'<tool_call>{"name": "f"\'\n'
    )


def test_an_image_is_shown_as_a_note_whatever_the_dialect_makes_of_it(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", HERMES_TOKENS)
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps([{"role": "user", "content": [{"type": "text", "text": "See:"}, shown]}]))
    done = ferrule("render", path, "--tokenizer", tmp_path / "tokenizer.json", "--dialect", "qwen35")
    assert done.returncode == 0, done.stderr
    assert "See:[image " in done.stdout
    assert "not preserved in qwen35: image: " in done.stderr
