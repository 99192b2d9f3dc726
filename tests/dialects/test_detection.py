"""Families told by what a chat template writes, and by the markers in a text."""

import json
from pathlib import Path

import pytest
from template_cases import EMBEDDED, LLAMA, MISTRAL, NAMES, QWEN, WEATHER, answered, trained

from ferrule.conversation import Conversation, assistant, system, user
from ferrule.dialects.catalogue import load_families
from ferrule.dialects.template.detection import detect_by_markers, detect_family
from ferrule.dialects.template.dialect import make_template_dialect
from ferrule.errors import DialectError
from ferrule.events import ReasoningDelta, TextDelta

TURNS = Path(__file__).parents[2].parent / "shared" / "vectors" / "render" / "tool_turns.json"
# By a part of the model's name; the last three share their markers with another family, so they are less sure.
EXPECTED = {
    "Apertus": "apertus", "ByteDance-Seed-OSS": "seed_oss", "Cohere2MoE": "cohere2", "GigaChat3": "gigachat31",
    "Kimi-K2": "kimi_k2", "Kimi-K3": "kimi_k3", "MiniMax-M2": "minimax_m2", "Mistral-Small": "mistral_small",
    "Ministral": "mistral", "Hermes-3": "hermes", "Qwen3-0.6B": "hermes", "QwQ": "hermes", "Spark": "spark",
    "DeepSeek-V3.1": "deepseek_v31", "DeepSeek-V3.2": "deepseek_v32", "DeepSeek-V4": "deepseek_v4",
    "gemma-4": "gemma4", "granite-4.1": "granite4", "v3.1": "functionary_v31", "Llama-3.3": "llama3_json",
    "muse-glimmer": "muse_glimmer", "GLM-4.6": "glm45", "GLM-4.7": "glm47", "Qwen3-Coder": "qwen3_coder",
}  # fmt: skip


@pytest.mark.parametrize(
    ("template", "name"),
    [(QWEN, "hermes"), (LLAMA, "llama3_json"), (MISTRAL, "mistral_v7"), (EMBEDDED, "nanochat-tools")],
    ids=["qwen", "llama", "mistral", "embedded"],
)
def test_templates(template, name):
    found = detect_family(template)
    assert found.name == name
    assert 0.8 < found.certainty < 1
    assert all(marker in template or marker in NAMES.values() for marker in found.evidence)


def test_nothing_is_nothing():
    assert detect_family("") is None
    assert (
        detect_family("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}") is None
    )


def written(call, *, before=""):
    """A template that writes its calls as `call` does, whose variables are `name` and `arguments`."""
    return (
        before + "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}"
        "{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') }}{% for c in m.tool_calls or [] %}"
        "{% set name, arguments = c.function.name, c.function.arguments %}" + call + "{% endfor %}{{ '<|im_end|>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )


def test_what_shares_its_markers_is_less_sure():
    found = detect_family(
        written(
            "<tool_call>\n<function={{ name }}>\n{% for k, v in arguments.items() %}<parameter={{ k }}>\n"
            "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"
        )
    )
    assert found.name == "qwen3_coder"
    assert found.certainty < 0.8


def test_markers_that_no_line_of_the_template_holds():
    """What counts is what is rendered: markers put together from parts, or in a macro, are markers."""
    spelled = written(
        '\n\n{{ b }}tool_calls>\n{{ b }}invoke name="{{ name }}">\n{% for k, v in arguments.items() %}'
        "{{ b }}parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else 'false' }}\">"
        "{{ v if v is string else v | tojson }}{{ e }}parameter>\n{% endfor %}{{ e }}invoke>\n{{ e }}tool_calls>",
        before="{% set d = '｜DSML｜' %}{% set b = '<' + d %}{% set e = '</' + d %}",
    )
    assert detect_by_markers(spelled) is None
    assert detect_family(spelled).name == "deepseek_v4"


def test_markers_that_the_template_never_writes_tell_nothing():
    misleading = written(
        "[TOOL_CALLS]{{ name }}[ARGS]{{ arguments | tojson }}",
        before="{# <tool_call><arg_key></arg_key><arg_value></arg_value> #}"
        "{% if false %}<|tool_call_start|>[f()]<|tool_call_end|>{% endif %}",
    )
    assert detect_family(misleading).name == "mistral"


def test_arguments_that_the_template_wants_as_text():
    assert detect_family(written(">>>{{ name }}\n{{ arguments }}")).name == "functionary_v32"


def test_calls_that_no_notation_reads_are_shown():
    template = written("%call {{ name }} %with {{ arguments | tojson }}%")
    with pytest.raises(DialectError) as caught:
        detect_family(template)
    assert '%call weather %with {"place": ' in str(caught.value)
    assert "name it" in str(caught.value)
    # Without tools the template serves all the same.
    dialect = make_template_dialect(template)
    assert trained(dialect.layout(Conversation((user("Hi"), assistant("Hello"))))) == ["Hello<|im_end|>"]
    assert dialect.capabilities.tools == ()
    with pytest.raises(DialectError, match=r"%call weather .*weather can't be offered to the model"):
        dialect.layout(Conversation((user("Hi"),)), [WEATHER])
    with pytest.raises(DialectError, match="%call weather"):
        dialect.layout(answered("Paris", "21"))


def test_a_template_that_refuses_calls_says_why():
    template = written("{{ raise_exception('no calls here') }}")
    with pytest.raises(DialectError, match=r"writes no tool calls: the chat template refuses .*no calls here"):
        detect_family(template)
    with pytest.raises(
        DialectError, match=r"no calls here.*weather can't be offered to the model; describe them in the text"
    ):
        make_template_dialect(template).layout(Conversation((user("Hi"),)), [WEATHER])


def test_a_template_for_tools_alone_whose_calls_nobody_reads():
    template = written("%call {{ name }} {{ arguments | tojson }}%", before="{{ tools | length }}")
    with pytest.raises(DialectError, match=r"no notation reads the calls (.|\n)*name it.*; without tools, .*refuses"):
        make_template_dialect(template)


def test_a_template_without_calls():
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{% for m in messages %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles alternate') }}{% endif %}"
        "{{ '<start_of_turn>' + m.role + '\\n' + m.content + '<end_of_turn>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>assistant\\n' }}{% endif %}"
    )
    assert detect_family(template) is None
    dialect = make_template_dialect(template)
    assert (dialect.capabilities.tools, dialect.capabilities.system) == ((), False)
    layout = dialect.layout(Conversation((user("Hi"), assistant("Hello"))))
    assert trained(layout) == ["Hello<end_of_turn>"]
    assert layout.prompt[0].text == "<start_of_turn>assistant\n"
    events = dialect.reader(opens=layout.prompt[0].text).feed('<tool_call>{"name": "weather"}</tool_call>')
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == '<tool_call>{"name": "weather"}</tool_call>'
    with pytest.raises(DialectError, match="writes no tool calls, so weather can't be offered to the model"):
        dialect.layout(Conversation((user("Hi"),)), [WEATHER])
    with pytest.raises(DialectError, match="writes no tool calls"):
        dialect.layout(answered("Paris", "21"))
    with pytest.raises(DialectError, match="no system"):
        dialect.layout(Conversation((system("Be brief."), user("Hi"))))
    with pytest.raises(DialectError, match="roles alternate"):
        dialect.layout(Conversation((user("Hi"), user("there"))))


@pytest.mark.parametrize(
    "written_as",
    [
        "{{ '<think>' + m.reasoning_content + '</think>' }}",
        "{# the prompt #}{% if '</think>' in m.content %}{% endif %}",
    ],
)
def test_the_reasoning_of_a_template_without_calls(written_as):
    template = (
        "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.reasoning_content %}" + written_as + "{% endif %}"
        "{{ m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    events = make_template_dialect(template).reader().feed("<think>So.</think>Hello.")
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "So."
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello."


@pytest.mark.parametrize("part", EXPECTED)
def test_what_real_templates_write(part):
    if not TURNS.exists():
        pytest.skip("../shared/vectors is missing")
    turns = json.loads(TURNS.read_text(encoding="utf-8"))
    name = next(name for name in turns if part in name and ("functionary" in EXPECTED[part]) is ("functionary" in name))
    found = detect_by_markers("".join(case["text"] for case in turns[name].values()))
    assert (name, found.name) == (name, EXPECTED[part])


def test_only_known_families_are_named():
    from ferrule.dialects.template.detection import _IN_WORDS, _SIGNS, _WITHOUT

    assert {*_SIGNS, *_WITHOUT, *_IN_WORDS} <= load_families().keys()
