"""Names of notations and dialects: what is suggested for one that is unknown."""

import pytest

from ferrule.dialects import get_dialect, get_notation, list_dialects
from ferrule.dialects.catalogue import load_families
from ferrule.errors import DialectError
from tables import each_case


@each_case(
    ("name", "suggested"),
    [
        ("qwen", ("hermes, qwen25 (Qwen 2.5, Qwen 3, Qwen 3 VL)", "qwen3_coder (Qwen 3 Coder)", "qwen35 (Qwen 3.5")),
        ("qwen3", ("did you mean hermes (Qwen 3)?",)),
        ("Qwen/Qwen3-8B", ("did you mean hermes (Qwen 3)?",)),
        ("Qwen3.5-4B", ("did you mean qwen35 (Qwen 3.5)?",)),
        ("spark-25", ("did you mean spark (Spark 2.5)?",)),
        ("deepseek", ("deepseek_v3, deepseek_r1 (DeepSeek V3, DeepSeek R1", "deepseek_v31", "deepseek_v4 (")),
        ("llama", ("pythonic, llama4_pythonic (Llama 4, Llama 3.2 (1B and 3B))",)),
        ("phi4", ("did you mean phi4_mini (Phi-4-mini)?",)),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", ("did you mean nemotron_v3 (Nemotron 3 Nano)?",)),
        ("NousResearch/Hermes-3-Llama-3.1-8B", ("did you mean hermes (Hermes 3)?",)),
        ("meta-llama/Llama-3.3-70B-Instruct", ("did you mean llama3_json (Llama 3.3)?",)),
        ("llm-jp/llm-jp-4.1-8b", ("did you mean harmony (LLM-jp 4.1)?",)),
        ("facebook/cwm", ("did you mean cwm?",)),
        ("hermmes", ("did you mean hermes?",)),
        ("xyz", ("expected one of ", "hermes")),
        ("", ("expected one of ",)),
    ],
)
def test_an_unknown_name_is_answered_by_those_of_the_models_that_it_may_mean(name, suggested):
    with pytest.raises(DialectError) as refused:
        get_notation(name)
    assert all(part in str(refused.value) for part in suggested), refused.value


def test_only_dialects_are_suggested_for_a_dialect():
    with pytest.raises(DialectError, match=r"hermes, qwen25, qwen3_nothink, qwen3_vl.* \(Qwen 2.5"):
        get_dialect("qwen")


@pytest.mark.parametrize("name", ["gigachat35", "gigachat3.5", "ai-sage/GigaChat3.5-10B", "openpangu_v2", "plamo"])
def test_a_family_without_turns_is_not_answered_by_the_dialect_of_another(name):
    with pytest.raises(DialectError, match=r"only the calls are known, by get_notation: (gigachat35|openpangu|plamo3)"):
        get_dialect(name)


def test_each_name_and_alias_is_that_of_one_notation():
    names = [name for family in load_families().values() for name in (family.name, *family.aliases)]
    assert len(names) == len(set(names))
    assert all(name in (notation := get_notation(name)).family.aliases or name == notation.name for name in names)


@pytest.mark.parametrize("find", [get_dialect, get_notation])
@pytest.mark.parametrize("name", [None, 5])
def test_a_name_that_is_not_a_text_is_refused(find, name):
    with pytest.raises(DialectError, match="must be a text, not"):
        find(name)


def test_without_tools_or_calls_a_message_may_be_any_text():
    assert not any(get_dialect(name).grammar((), "auto") for name in list_dialects())
    assert not any(get_dialect(name).grammar((), "none") for name in list_dialects())
