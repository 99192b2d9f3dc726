"""Whether a dialect writes earlier turns otherwise later on: what it declares is what its layouts do."""

from dataclasses import replace

import pytest
from mask_checks import conversation_of, family_of, tool_for
from template_cases import ALL as TEMPLATES
from test_masks import STORIES

from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.segments import Content, Control
from ferrule.errors import DialectError


def written(segments):
    """The text of segments, and for each of its characters whether it is trained."""
    texts = [(s.text, s.trained) for s in segments if isinstance(s, Control | Content)]
    return "".join(text for text, _ in texts), "".join("yn"[not trained] * len(text) for text, trained in texts)


def rewritten(dialect, conversation, tools):
    """The places of the messages before which the prompt, as a model was given it, is no part of what follows."""
    whole = written(dialect.layout(conversation, tools).segments)
    found = []
    for place, message in enumerate(conversation.messages):
        if message.role != "assistant" or not place:
            continue
        beginning = replace(conversation, messages=conversation.messages[:place])
        text, trained = written(dialect.layout(beginning, tools).with_prompt)
        if not (whole[0].startswith(text) and whole[1].startswith(trained)):
            found.append(place)
    return found


def stories_rewritten(dialect):
    """The stories of which a dialect writes a beginning otherwise later on; those that it refuses are left out."""
    one_tool = family_of(dialect).one_tool
    found = []
    for story in STORIES:
        conversation, _ = conversation_of(story.split(), dialect.capabilities, one_tool)
        for tools in ([], [tool_for(one_tool)]):
            try:
                if rewritten(dialect, conversation, tools):
                    found.append(story)
            except DialectError:
                continue
    return found


@pytest.mark.parametrize("name", list_dialects())
def test_a_dialect_rewrites_history_where_it_says_so(name):
    dialect = get_dialect(name)
    found = stories_rewritten(dialect)
    assert bool(found) == dialect.rewrites_history, found


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_rewrites_history_where_probing_says_so(name):
    dialect = TEMPLATES[name]
    found = stories_rewritten(dialect)
    assert bool(found) == dialect.rewrites_history, found
