"""Rendering with a loss mask: conversations a CPU-second, against `apply_chat_template` of transformers.

    python benchmarks/rendering.py [--json] [--conversations 400] [--rounds 5]

An 8k byte-level BPE is trained here on the standard library's own sources, with Qwen's added tokens. The conversations
have three turns, a question and its answer, with a call and its result between them in one turn of the three; about
300 tokens (the figure is printed) with the offered tools, which are one of three fixed sets. Both sides give ids and a
mask, which must be identical, and run in one thread; what is compared is CPU time, in rounds that take turns. Ferrule
renders with its own dialect and with the same chat template as transformers; with the latter also where each call has
an id of its own, and where no conversation has the shape of an earlier one, since each call has a number of its own in
its arguments. The same three again with a template that first searches the conversation from its end for the last
question, and writes the reasoning of answers after it, and then conversations of new shapes after each of their
messages, as in an agent's loop. Needs the extra `ferrule[local]`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path
from typing import Any, NamedTuple

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from ferrule.conversation import (
    Conversation,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect
from ferrule.dialects.protocol import Dialect
from ferrule.dialects.template.dialect import make_template_dialect
from ferrule.tokens.hugging_face import HuggingFaceTokenizer
from ferrule.tokens.render import render
from ferrule.toolspec import ToolSpec

ADDED = (
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<tool_response>", False),
    ("</tool_response>", False),
    ("<think>", False),
    ("</think>", False),
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Qwen 3's template without its treatment of reasoning, and with the marks that `return_assistant_tokens_mask` needs.
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\nYou are provided with \
function signatures within <tools></tools> XML tags:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n\
</tool_call><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {{- message.content }}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and message.content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.function.name }}
                {{- '", "arguments": ' }}
                {{- tool_call.function.arguments | tojson }}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

LOOP = "{%- for message in messages %}"
SEARCH = """\
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- if ns.searching and message.role == "user" %}
        {%- set ns.searching = false %}
        {%- set ns.last = (messages|length - 1) - loop.index0 %}
    {%- endif %}
{%- endfor %}
"""
REASONING = """\
        {%- if loop.index0 > ns.last and (loop.last or message.reasoning_content) %}
            {{- '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' }}
        {%- endif %}
"""
SEARCHING_TEMPLATE = TEMPLATE.replace(LOOP, SEARCH + LOOP).replace(
    "        {{- message.content }}\n", REASONING + "        {{- message.content }}\n"
)

PROSE = (
    "the value of this file which returns a new list when it is called with every key from that class and sets one "
    "default name for all other modules in order to read back what was written before any error could be raised again"
)
WORDS = PROSE.split()
CITIES = ("Paris", "Rome", "Oslo", "Lima", "Kyoto", "Zürich", "San José")


def train_tokenizer(path: Path, vocabulary: int = 8192) -> None:
    """Write a byte-level BPE of `vocabulary` entries, and Qwen's added tokens, to `path`."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_library_texts(), trainer)
    for name, is_special in ADDED:
        tokenizer.add_tokens([AddedToken(name, special=is_special, normalized=False)])
    tokenizer.save(str(path))


def _library_texts(limit: int = 4_000_000) -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    for source in [*sorted((library / "pydoc_data").glob("*.py")), *sorted(library.glob("*.py"))]:
        text = source.read_text(encoding="utf-8", errors="replace")
        yield text
        limit -= len(text)
        if limit < 0:
            return


def tool_sets() -> list[list[ToolSpec]]:
    """Three fixed sets of one or two small tools."""

    def spec(name: str, description: str, **properties: str) -> ToolSpec:
        schema = {key: {"type": kind} for key, kind in properties.items()}
        return ToolSpec(
            name, description, {"type": "object", "properties": schema, "required": list(properties)}, origin="code"
        )

    weather = spec("get_weather", "The weather of a city.", city="string", days="integer")
    calculator = spec("calculator", "Evaluates an expression exactly.", expression="string")
    search = spec("search", "Searches the documents.", query="string")
    return [[weather], [calculator, search], [search]]


def conversations(count: int, seed: int = 0) -> list[tuple[Conversation, list[ToolSpec]]]:
    """Conversations of three turns, one of which has a call, and the tools that they offer."""
    generator = random.Random(seed)
    sets = tool_sets()
    made = []
    for number in range(count):
        tools = sets[number % len(sets)]
        conversation = Conversation((system("Answer briefly."),))
        calling_turn = generator.randrange(3)
        for turn in range(3):
            conversation = conversation.add(user(_sentence(generator, 6)))
            if turn == calling_turn:
                spec = generator.choice(tools)
                call = ToolCall("call_1", spec.name, json.dumps(_arguments(generator, spec), ensure_ascii=False))
                result = ToolResult(call.id, spec.name, (Text(json.dumps({"value": generator.randint(0, 999)})),))
                conversation = conversation.add(
                    assistant(_sentence(generator, 3), call) if number % 2 else assistant(call), tool_message(result)
                )
            conversation = conversation.add(assistant(_sentence(generator, 7)))
        made.append((conversation, tools))
    return made


def _sentence(generator: random.Random, length: int) -> str:
    words = [generator.choice(WORDS) for _ in range(length)]
    return f"{' '.join(words).capitalize()}."


def _arguments(generator: random.Random, spec: ToolSpec) -> dict[str, Any]:
    drawn = {
        "city": generator.choice(CITIES),
        "days": generator.randint(1, 9),
        "expression": f"{generator.randint(1, 9999)} * {generator.randint(1, 9999)}",
        "query": _sentence(generator, 3),
    }
    return {name: drawn[name] for name in spec.parameters["properties"]}


def as_dictionaries(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages in the shape that transformers' templates take."""
    messages: list[dict[str, Any]] = []
    for message in conversation.messages:
        if message.role == "tool":
            messages.append({"role": "tool", "content": message.result.text})
            continue
        entry: dict[str, Any] = {"role": message.role, "content": message.text}
        calls = [part for part in message.calls if isinstance(part, ToolCall)]
        if calls:
            entry["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": call.decode()}} for call in calls
            ]
        messages.append(entry)
    return messages


def offered(tools: list[ToolSpec]) -> list[dict[str, Any]]:
    """The tools in the shape that transformers' templates take."""
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)},
        }
        for spec in tools
    ]


Data = list[tuple[Conversation, list[ToolSpec]]]
Rendered = list[tuple[list[int], list[int]]]
_numbers = count_from(10)  # one digit is a number of days


class Side(NamedTuple):
    """What is compared: `render` gives the ids and the mask of every conversation, from what `convert` makes of them.

    `make` gives the conversations; `convert` isn't measured.
    """

    make: Callable[[], Data]
    convert: Callable[[Data], Any]
    render: Callable[[Any], Rendered]


def with_own_ids(data: Data) -> Data:
    """The conversations with another id for each call, as in data from an API."""
    return [
        (Conversation(tuple(_rename_call(one, f"call_{number:06x}") for one in conversation.messages)), tools)
        for number, (conversation, tools) in enumerate(data)
    ]


def _rename_call(message: Message, id_: str) -> Message:
    if message.role == "tool":
        return message.with_parts([replace(message.result, call_id=id_)])
    return message.with_parts(replace(part, id=id_) if isinstance(part, ToolCall) else part for part in message.parts)


def with_new_shapes(data: Data) -> Data:
    """The conversations with another number in each call, which no call had before."""
    return [
        (Conversation(tuple(_number_call(one, next(_numbers)) for one in conversation.messages)), tools)
        for conversation, tools in data
    ]


def _number_call(message: Message, number: int) -> Message:
    return message.with_parts(
        replace(part, arguments=json.dumps({**part.decode(), "days": number}, ensure_ascii=False))
        if isinstance(part, ToolCall)
        else part
        for part in message.parts
    )


def grow(data: Data) -> Data:
    """Each conversation after each of its messages from the first question on."""
    return [
        (Conversation(conversation.messages[:length]), tools)
        for conversation, tools in data
        for length in range(2, len(conversation.messages) + 1)
    ]


def make_sides(path: Path, data: Data) -> dict[str, Side]:
    """What is compared, by name."""
    from transformers import PreTrainedTokenizerFast

    ours = HuggingFaceTokenizer(path)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|im_end|>")

    def make_theirs(template: str, make: Callable[[], Data] = lambda: data) -> Side:
        options = {"tokenize": True, "return_dict": True, "return_assistant_tokens_mask": True}

        def render_theirs(dictionaries: list[tuple[Any, Any]]) -> Rendered:
            encoded = (
                theirs.apply_chat_template(m, tools=t, chat_template=template, **options) for m, t in dictionaries
            )
            return [(one["input_ids"], one["assistant_masks"]) for one in encoded]

        return Side(make, lambda given: [(as_dictionaries(one), offered(tools)) for one, tools in given], render_theirs)

    def make_side(dialect: Dialect, make: Callable[[], Data] = lambda: data) -> Side:
        def render_ours(given: Data) -> Rendered:
            traces = (render(conversation, dialect, ours, tools) for conversation, tools in given)
            return [(list(trace.ids), list(trace.mask)) for trace in traces]

        return Side(make, lambda given: given, render_ours)

    names = {"eos_token": "<|im_end|>"}
    template = make_template_dialect(TEMPLATE, special_tokens=names)
    searching = make_template_dialect(SEARCHING_TEMPLATE, special_tokens=names)
    few = data[: len(data) // 8 or 1]  # each is rendered about eight times
    return {
        "transformers": make_theirs(TEMPLATE),
        "ferrule": make_side(get_dialect("hermes")),
        "chat_template": make_side(template),
        "chat_template_own_ids": make_side(template, lambda: with_own_ids(data)),
        "chat_template_new_shapes": make_side(template, lambda: with_new_shapes(data)),
        "transformers_searching": make_theirs(SEARCHING_TEMPLATE),
        "searching": make_side(searching),
        "searching_own_ids": make_side(searching, lambda: with_own_ids(data)),
        "searching_new_shapes": make_side(searching, lambda: with_new_shapes(data)),
        "transformers_growing": make_theirs(SEARCHING_TEMPLATE, lambda: grow(with_new_shapes(few))),
        "growing": make_side(searching, lambda: grow(with_new_shapes(few))),
    }


def baseline(side: str) -> str:
    """The side of transformers that a side is compared with."""
    return next((f"transformers_{kind}" for kind in ("searching", "growing") if kind in side), "transformers")


def _check_sides(sides: dict[str, Side]) -> float:
    """How many tokens a conversation has. Raises `SystemExit` where a side gives others than transformers."""
    length = 0.0
    for name, side in sides.items():
        data, theirs = side.make(), sides[baseline(name)]
        expected, given = theirs.render(theirs.convert(data)), side.render(side.convert(data))
        different = sum(one[0] != other[0] for one, other in zip(expected, given, strict=True))
        masked = sum(one[1] != other[1] for one, other in zip(expected, given, strict=True))
        if different or masked:
            raise SystemExit(f"{name}: ids differ in {different} and masks in {masked} of {len(data)} conversations")
        length = length or statistics.mean(len(ids) for ids, _ in given)
    return length


def measured(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Conversations a CPU-second of all sides, and whether they agree. Raises `SystemExit` where they don't."""
    path = folder / "tokenizer.json"
    train_tokenizer(path)
    sides = make_sides(path, conversations(count))
    length = _check_sides(sides)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            data = side.make()
            given = side.convert(data)
            start = time.process_time()
            side.render(given)
            times[name].append((time.process_time() - start) / len(data))
    speeds = {name: 1 / statistics.median(taken) for name, taken in times.items()}
    ratios = {name: speed / speeds[baseline(name)] for name, speed in speeds.items() if name != baseline(name)}
    return {
        "conversations": count,
        "tokens_per_conversation": length,
        **{f"{name}_per_cpu_second": speed for name, speed in speeds.items()},
        **{f"{name}_ratio": ratio for name, ratio in ratios.items()},
        "identical_ids": True,
        "identical_masks": True,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Rendering with a mask against transformers.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--conversations", type=int, default=400, help="how many conversations a round renders")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds the median is taken of")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(Path(folder), arguments.conversations, arguments.rounds)
    if arguments.json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    print(f"{figures['tokens_per_conversation']:.0f} tokens a conversation, ids and masks identical")
    for name in (key.removesuffix("_per_cpu_second") for key in figures if key.endswith("_per_cpu_second")):
        ratio = figures.get(f"{name}_ratio", 1)
        print(f"{name:24}  {figures[f'{name}_per_cpu_second']:8,.0f} conversations a CPU-second  {ratio:5.2f}")


if __name__ == "__main__":
    main()
