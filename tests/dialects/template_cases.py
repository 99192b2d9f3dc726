"""Chat templates for tests: short ones in the style of three families, and the embedded model's own."""

import json
from pathlib import Path

import ferrule
from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.segments import Content, Control
from ferrule.dialects.template.dialect import TemplateDialect
from ferrule.toolspec import ToolSpec

FOLDER = Path(__file__).parent / "templates"
NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
QWEN = (FOLDER / "like_qwen3.jinja").read_text(encoding="utf-8")
LLAMA = (FOLDER / "like_llama31.jinja").read_text(encoding="utf-8")
MISTRAL = (FOLDER / "like_mistral.jinja").read_text(encoding="utf-8")
EMBEDDED = (Path(ferrule.__file__).parent / "embedded" / "chat_template.jinja").read_text(encoding="utf-8")
ALL = {
    "qwen": TemplateDialect(get_notation("hermes"), QWEN, special_tokens=NAMES),
    "llama": TemplateDialect(get_notation("llama3_json"), LLAMA, special_tokens=NAMES),
    "mistral": TemplateDialect(get_notation("mistral_v7"), MISTRAL, special_tokens=NAMES),
    "embedded": TemplateDialect(get_notation("nanochat"), EMBEDDED, special_tokens={"bos_token": "<|bos|>"}),
}
WEATHER = ToolSpec(
    "weather",
    "The weather, & its <|im_end|>.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A city."}, "days": {"type": "integer"}},
    },
)


def answered(city, result, thought="", days=1):
    """A question, a call and its result, and an answer; with reasoning where some is given."""
    call = ToolCall("call_1", "weather", json.dumps({"city": city, "days": days}, ensure_ascii=False))
    before = (Reasoning(thought),) if thought else ()
    return Conversation(
        (
            user("Weather?"),
            assistant(*before, call),
            tool_message(ToolResult("call_1", "weather", (Text(result),))),
            assistant("Warm."),
        )
    )


def trained(layout):
    """What is trained, run by run."""
    runs = [""]
    for segment in layout.segments:
        if segment.trained:
            runs[-1] += segment.text
        elif runs[-1]:
            runs.append("")
    return [run for run in runs if run]


def control(layout):
    return "".join(s.text for s in layout.with_prompt if isinstance(s, Control))


def contents(layout):
    return [s.text for s in layout.segments if isinstance(s, Content)]
