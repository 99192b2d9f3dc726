"""A dialect from a model's folder."""

import json
from pathlib import Path

import pytest

import ferrule
from ferrule.conversation import Conversation, ToolCall, assistant, system, user
from ferrule.errors import TokenizerError
from ferrule.tokens.render import render
from ferrule.tokens.template_loading import load_dialect
from ferrule.toolspec import ToolSpec

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HELLO = Conversation((user("Hi <|im_end|>"), assistant("Hello")))


def settings(folder, **values):
    (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")


def test_from_the_configuration(tmp_path):
    settings(tmp_path, chat_template=TEMPLATE, bos_token={"content": "<s>"}, eos_token=None)
    dialect = load_dialect(tmp_path)
    assert dialect.notation.name == "hermes"
    assert 0.8 < dialect.certainty < 1
    assert dialect.layout(HELLO).text.startswith("<s><|im_start|>user\nHi <|im_end|><|im_end|>")


def test_a_file_of_its_own_stands_for_the_configuration(tmp_path):
    settings(tmp_path, chat_template=[{"name": "default", "template": "x"}, {"name": "tool_use", "template": TEMPLATE}])
    assert load_dialect(tmp_path).template == TEMPLATE
    (tmp_path / "chat_template.jinja").write_text(f"{TEMPLATE}{{# #}}", encoding="utf-8")
    assert load_dialect(tmp_path).template.endswith("{# #}")


SIMPLE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
# As some that were made for tools are: without any, it can't be rendered.
FOR_TOOLS = "{% for t in tools %}{{ t | tojson }}{% endfor %}" + TEMPLATE
PAIR = {"default": SIMPLE, "tool_use": FOR_TOOLS}


def in_a_list(folder):
    settings(folder, chat_template=[{"name": name, "template": text} for name, text in PAIR.items()])


def in_files(folder):
    (folder / "chat_template.jinja").write_text(SIMPLE, encoding="utf-8")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text(FOR_TOOLS, encoding="utf-8")


def beside_images(folder):
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": PAIR}), encoding="utf-8")


@pytest.mark.parametrize("write", [in_a_list, in_files, beside_images])
@pytest.mark.parametrize("family", [None, "hermes"])
def test_of_two_templates_each_serves_its_conversations(tmp_path, write, family):
    write(tmp_path)
    dialect = load_dialect(tmp_path, family=family)
    call = ToolCall("call_1", "weather", '{"city": "Paris"}')
    tools = [ToolSpec("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})]
    asked = Conversation((user("Hi"), assistant("Hello"), user("Weather?")))
    assert dialect.layout(asked).text == "<|user|>Hi<|end|><|assistant|>Hello<|end|><|user|>Weather?<|end|>"
    offered = dialect.layout(asked.add(assistant(call)), tools)
    assert offered.text.endswith(
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call><|im_end|>\n'
    )
    assert '"name": "weather", "description": ' in offered.text
    assert dialect.notation.name == "hermes"


def test_templates_of_other_names(tmp_path):
    settings(tmp_path, chat_template=[{"name": "rag", "template": SIMPLE}, {"name": "tools", "template": SIMPLE}])
    with pytest.raises(TokenizerError, match="chat templates for rag, tools, but no default"):
        load_dialect(tmp_path)


def test_what_is_missing_is_told(tmp_path):
    with pytest.raises(TokenizerError, match="has no chat template"):
        load_dialect(tmp_path)
    settings(tmp_path, chat_template=SIMPLE)
    plain = load_dialect(tmp_path)
    assert plain.capabilities.tools == ()
    assert plain.layout(HELLO).text == "<|user|>Hi <|im_end|><|end|><|assistant|>Hello<|end|>"
    named = load_dialect(tmp_path, family="hermes")
    assert named.certainty == 1
    (tmp_path / "tokenizer_config.json").write_text("[", encoding="utf-8")
    with pytest.raises(TokenizerError, match="can't be read"):
        load_dialect(tmp_path)


def test_ids_of_the_embedded_models_folder(nanochat_bytes):
    dialect = load_dialect(Path(ferrule.__file__).parent / "embedded")
    assert dialect.notation.name == "nanochat-tools"
    conversation = Conversation((user("Hi <|user_end|>"), assistant("Hello")))
    trace = render(conversation, dialect, nanochat_bytes)
    end = nanochat_bytes.control["<|assistant_end|>"]
    assert trace.ids[-1] == end
    assert trace.ids.count(nanochat_bytes.control["<|user_end|>"]) == 1
    assert sum(trace.mask) == len("Hello") + 1


def test_ids_and_mask_are_those_of_transformers(bpe, bpe_file, tmp_path):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: pip install 'ferrule[local]'"
    )
    marked = TEMPLATE.replace("{{ m.content }}", "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}")
    marked = marked.replace(
        "<|im_end|>\n{% endfor %}",
        "<|im_end|>{% endgeneration %}\n{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}",
    )
    settings(tmp_path, chat_template=marked)
    dialect = load_dialect(tmp_path)
    call = ToolCall("call_1", "weather", '{"city": "Paris", "days": 2}')
    conversation = Conversation(
        (system("Be brief."), user("Weather?"), assistant("So: ", call), user("And?"), assistant("No."))
    )
    function = {"name": call.name, "arguments": call.decode()}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "So: ", "tool_calls": [{"type": "function", "function": function}]},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": "No."},
    ]
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(bpe_file), chat_template=marked)
    encoded = theirs.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
    trace = render(conversation, dialect, bpe)
    assert trace.ids == tuple(encoded["input_ids"])
    assert trace.mask == tuple(encoded["assistant_masks"])
