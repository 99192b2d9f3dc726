"""No tool of the training data shares its name or its domain with one of the hand-written lists."""

import json
from importlib.resources import files

import pytest

from ferrule.embedded.missing import split_name
from ferrule.training.synth import load_shipped_grammar
from ferrule.training.synth.tool_use.inventing import list_invented_names, list_nouns

# Words of the lists' domains that are too general to be a domain.
GENERAL = frozenset(
    ("and", "of", "the", "guides", "houses", "room", "rooms", "machines", "schools", "found", "hot", "road", "repair")
)


def read_tools(name: str) -> list[dict[str, str]]:
    text = (files("ferrule.embedded") / "phrasings" / f"{name}_tools.json").read_text("utf-8")
    tools: list[dict[str, str]] = json.loads(text)["tools"]
    return tools


def split_domain(domain: str) -> set[str]:
    words = {word.strip(",").lower() for word in domain.replace("_", " ").replace("-", " ").split()}
    return {word.removesuffix("s") for word in words - GENERAL}


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_no_name_is_one_of_the_lists(name: str) -> None:
    listed = {split_name(tool["name"]) for tool in read_tools(name)}
    templates = {split_name(name) for tool in load_shipped_grammar().tools for name in tool.names}
    # How many, not which: nobody who writes templates is to read the lists.
    shared = len(listed & (templates | list_invented_names()))
    assert shared == 0


@pytest.mark.parametrize("name", ["open", "held_out"])
def test_no_domain_is_one_of_the_lists(name: str) -> None:
    listed = set().union(*(split_domain(tool["domain"]) for tool in read_tools(name)))
    templates = set().union(*(split_domain(tool.domain) for tool in load_shipped_grammar().tools))
    nouns = set().union(*(split_domain(noun.singular) for noun in list_nouns()))
    shared = len(listed & (templates | nouns))
    assert shared == 0
