"""Tools by group and name, for a notation that writes both: `tool="weather" function="get_for_city"`.

A tool without a group is its own. Names are unique among the tools on offer, so a pair is as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.toolspec import ToolSpec


def groups_of(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """The group that each tool is shown in, by the tool's name."""
    return {spec.name: (spec.group.name if spec.group else spec.name) for spec in tools}


def split_name(name: str, groups: Mapping[str, str]) -> tuple[str, str]:
    """(group, function) of a tool; one that isn't on offer may have been read as `group.function`."""
    if name in groups:
        return groups[name], name
    group, _, function = name.rpartition(".")
    return (group, function) if group and group != function else (name, name)


def joined_name(group: str, function: str, groups: Mapping[str, str]) -> str:
    """The name of the tool that a call means: `group.function` where none on offer is meant.

    A model may leave the group out or make one up; but what it wants of another group isn't this one's to give.
    """
    full = f"{group}.{function}"
    if groups.get(function) == group:
        return function
    if full in groups:
        return full
    if function in groups:
        return full if group in groups.values() else function
    return function if group in ("", function) else full
