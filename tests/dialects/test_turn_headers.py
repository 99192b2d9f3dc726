"""What stands before the user's text, which no recording has, and what ends a turn whoever speaks next."""

import pytest
from dialect_events import calls as calls_of

from ferrule.conversation import Conversation, Text, ToolCall, ToolResult, assistant, system, tool_message, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.segments import Control
from tables import each_case

# As each model's own template writes a system prompt and a question, up to where the model goes on.
BEFORE_THE_ANSWER = {
    "apertus": "<s><|system_start|>SYS<|system_end|><|developer_start|>Deliberation: disabled\n"
    "Tool Capabilities: disabled<|developer_end|><|user_start|>USER<|user_end|><|assistant_start|>",
    "cohere": "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>SYS<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
    "<|USER_TOKEN|>USER<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "functiongemma": "<bos><start_of_turn>developer\nSYS<end_of_turn>\n<start_of_turn>user\nUSER<end_of_turn>\n"
    "<start_of_turn>model\n",
    "gigachat3": "<s>system<|role_sep|>\nSYS<|message_sep|>\n\nuser<|role_sep|>\nUSER<|message_sep|>\n\n"
    "assistant<|role_sep|>\n",
    "glm47": "[gMASK]<sop><|system|>SYS<|user|>USER<|assistant|><think>",
    "hunyuan_a13b": "<|startoftext|>SYS<|extra_4|>USER<|extra_0|>",
    "internlm2": "<s><|im_start|>system\nSYS<|im_end|>\n<|im_start|>user\nUSER<|im_end|>\n<|im_start|>assistant\n",
    "jamba": "<|startoftext|><|bom|><|system|> SYS<|eom|><|bom|><|user|> USER<|eom|><|bom|><|assistant|>",
    "kimi_k2": "<|im_system|>system<|im_middle|>SYS<|im_end|><|im_user|>user<|im_middle|>USER<|im_end|>"
    "<|im_assistant|>assistant<|im_middle|>",
    "llama3_json": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nSYS<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nUSER<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "minimax_m2": "]~!b[]~b]system\nSYS[e~[\n]~b]user\nUSER[e~[\n]~b]ai\n<think>\n",
    "mistral": "<s>[SYSTEM_PROMPT]SYS[/SYSTEM_PROMPT][INST]USER[/INST]",
    "nemotron_v2": "<SPECIAL_10>System\nSYS\n<SPECIAL_11>User\nUSER\n<SPECIAL_11>Assistant\n<think>\n",
    "phi4_mini": "<|system|>SYS<|end|><|user|>USER<|end|><|assistant|>",
    "pythonic": "<|begin_of_text|><|header_start|>system<|header_end|>\n\nSYS<|eot|><|header_start|>user<|header_end|>"
    "\n\nUSER<|eot|><|header_start|>assistant<|header_end|>\n\n",
    "qwen35": "<|im_start|>system\nSYS<|im_end|>\n<|im_start|>user\nUSER<|im_end|>\n<|im_start|>assistant\n<think>\n",
    "reka_edge": "system: SYS\n\n<sep>human: USER<sep>assistant: <think>\n",
    "seed_oss": "<seed:bos>system\nSYS<seed:eos><seed:bos>user\nUSER<seed:eos><seed:bos>assistant\n",
}  # fmt: skip
QUESTION = (system("SYS"), user("USER"))
WITH_TURNS = sorted(set(list_dialects()) - {"nanochat", "qwen25"})


@each_case("name", BEFORE_THE_ANSWER)
def test_what_stands_before_an_answer_is_what_the_models_template_writes(name):
    layout = get_dialect(name).layout(Conversation(QUESTION))
    assert "".join(segment.text for segment in layout.with_prompt) == BEFORE_THE_ANSWER[name]


def test_an_empty_system_turn_where_the_template_writes_one():
    layout = get_dialect("cohere").layout(Conversation(QUESTION[1:]))
    assert layout.text.startswith("<BOS_TOKEN><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|END_OF_TURN_TOKEN|>")


@pytest.mark.parametrize(
    ("name", "end", "next_turn"),
    [("glm45", "<|user|>", "<|system|>\nSYS<|user|>\n"), ("glm47", "<|user|>", "<|system|>SYS<|user|>")],
)
def test_a_system_message_after_an_answer_keeps_the_token_that_ended_it(name, end, next_turn):
    dialect = get_dialect(name)
    answered = (user("?"), assistant("So."))
    layout = dialect.layout(Conversation((*answered, *QUESTION)))
    before = dialect.layout(Conversation(answered)).segments
    assert before[-1] == Control(end, trained=True)
    assert layout.segments[: len(before)] == before
    assert "".join(segment.text for segment in layout.segments[len(before) :]) == f"{next_turn}USER"


@pytest.mark.parametrize("name", WITH_TURNS)
def test_whoever_speaks_next_a_turn_keeps_its_end(name):
    dialect = get_dialect(name)
    one_tool = dialect.family.one_tool if hasattr(dialect, "family") else None
    tool, parameter = one_tool or ("weather", "city")
    call = assistant(ToolCall("call_1", tool, f'{{"{parameter}": "x"}}'))
    result = tool_message(ToolResult("call_1", tool, (Text("21"),)))
    answer, ask, tell = assistant("So."), user("?"), system("Now.")
    for messages in (
        (ask, answer, tell, ask, answer),
        (ask, answer, answer),
        (ask, answer, result, answer),
        (ask, call, ask, answer),
        (ask, call, tell, ask, answer),
        (ask, call, answer),
        (ask, call, result, tell, ask, answer),
        (ask, call, result, ask, answer),
        (answer, ask, answer),
        (tell, tell, ask, answer),
    ):
        whole = of_characters(dialect.layout(Conversation(messages)).segments)
        for at, message in enumerate(messages):
            prompt = of_characters(dialect.layout(Conversation(messages[:at])).with_prompt)
            until = dialect.layout(Conversation(messages[: at + 1])).segments
            assert whole[: len(until_text := of_characters(until))] == until_text
            if message.role == "assistant":
                assert whole[: len(prompt)] == prompt
                assert any(segment.trained and isinstance(segment, Control) for segment in until[-2:])


def of_characters(segments):
    return [(character, type(s), s.trained) for s in segments for character in s.text]


def test_the_calls_of_minimax_m1_stand_in_lines():
    dialect = get_dialect("minimax_m1")
    calls = [ToolCall(f"call_{n}", "weather", f'{{"city": "{city}"}}') for n, city in ((1, "Paris"), (2, "Rome"))]
    text = dialect.notation.calls(calls)
    assert text == (
        '<tool_calls>\n{"name": "weather", "arguments": {"city": "Paris"}}\n'
        '{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_calls>'
    )
    reader = dialect.reader()
    assert [c.decode() for c in calls_of(reader.feed(text) + reader.close())] == [
        {"city": "Paris"},
        {"city": "Rome"},
    ]


def test_the_ids_of_solar_open_are_kept():
    dialect = get_dialect("solar_open")
    written = dialect.notation.calls([ToolCall("abc123", "weather", "{}")])
    assert "<|tool_call:begin|>abc123<|tool_call:name|>weather<|tool_call:args|>{}<|tool_call:end|>" in written
    reader = dialect.reader()
    assert [call.id for call in calls_of(reader.feed(written) + reader.close())] == ["abc123"]
