"""What is trained, for every dialect: what an assistant wrote, all of it, and nothing else."""

from dataclasses import replace

import pytest
from mask_checks import conversation_of, family_of, faults, tool_for
from template_cases import ALL as TEMPLATES

from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.segments import Content, Control
from ferrule.errors import DialectError

# What happens in a conversation, in the letters of `conversation_of`.
STORIES = (
    "s u t u t",
    "u rt",
    "u rc t",
    "s u rtc rt u t",
    "u tc t",
    "u ct t",
    "u rtcc rt",
    "u cc c t u c t",
    "u ec t",
    "u rec rt u rt",
    "u t t",
    "u c u t",
    "u tcc tc t",
    "t u t",
    "s u tc s u t",
    "u m t",
    "u rtcm t",
    "i t u ic t",
)


@pytest.mark.parametrize("name", list_dialects())
def test_what_the_assistant_wrote_is_trained_and_nothing_else(name):
    dialect = get_dialect(name)
    one_tool, found = family_of(dialect).one_tool, {}
    for number, story in enumerate(STORIES):
        conversation, words = conversation_of(story.split(), dialect.capabilities, one_tool)
        tools = [tool_for(one_tool)] if number % 2 else []
        found[story] = faults(dialect, conversation, words, tools)
    assert {story: wrong for story, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_same_holds_for_what_a_chat_template_writes(name):
    dialect = TEMPLATES[name]
    one_tool, found, written = family_of(dialect).one_tool, {}, 0
    for number, story in enumerate(STORIES):
        conversation, words = conversation_of(story.split(), dialect.capabilities, one_tool)
        try:
            wrong = faults(dialect, conversation, words, [tool_for(one_tool)] if number % 2 else [])
        except DialectError:
            # Templates refuse what they have no place for.
            continue
        written += 1
        if wrong:
            found[story] = wrong
    assert found == {}
    assert written >= len(STORIES) // 2


class Altered:
    """A dialect whose segments are changed: its mask is wrong."""

    def __init__(self, dialect, change):
        self._dialect, self._change = dialect, change

    def __getattr__(self, name):
        return getattr(self._dialect, name)

    def layout(self, conversation, tools=()):
        layout = self._dialect.layout(conversation, tools)
        return replace(layout, segments=tuple(self._change(segment) for segment in layout.segments))


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda s: replace(s, trained=True) if isinstance(s, Content) and "Error" in s.text else s, "of others"),
        (lambda s: replace(s, trained=True) if getattr(s, "ends_run", False) else s, "assistant' is trained"),
        (lambda s: replace(s, trained=False) if s.text == "<|im_end|>" else s, "no end of message"),
        (lambda s: replace(s, trained=False) if isinstance(s, Content) else s, "is not trained"),
        (lambda s: replace(s, trained=False) if s.text == "</tool_call>" else s, "not trained as one"),
        (lambda s: replace(s, trained=True) if isinstance(s, Control) else s, "is trained"),
    ],
)
def test_a_wrong_mask_is_found(change, wrong):
    dialect = Altered(get_dialect("hermes3"), change)
    conversation, words = conversation_of(["s", "u", "tc", "c", "c", "t", "u", "t"], dialect.capabilities)
    assert any(wrong in fault for fault in faults(dialect, conversation, words))
