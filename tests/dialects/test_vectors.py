"""The recorded cases of other engines: each asserted field holds, or the case is listed with the reason why not."""

from typing import Any

import pytest
from dialect_events import check_spans, joined
from vectors import FOLDER, IS_MISSING, cases, differences, events_of, faults, format_names, is_a_fragment

from ferrule.dialects.catalogue import get_notation

pytestmark = IS_MISSING
PARSED = [(name, case["id"]) for name in format_names("parse") for case in cases("parse", name)]
STREAMED = [
    (name, case["id"])
    for name in format_names("streamed")
    for case in cases("streamed", name)
    if not is_a_fragment(case)
]


def check(case: dict[str, Any], name: str, pieces: list[str]) -> None:
    notation = get_notation(name)
    events = events_of(case, notation, pieces)
    check_spans(events, "".join(pieces))
    assert joined(events_of(case, notation, list("".join(pieces)))) == joined(events)
    found = faults(case, events, by_convention=True)
    reason = differences(name).get(case["id"])
    if reason is None:
        assert not found
    else:
        assert found, f"listed as different, but is not: {reason}"


@pytest.mark.parametrize(("name", "identifier"), PARSED)
def test_a_whole_text(name: str, identifier: str) -> None:
    case = next(case for case in cases("parse", name) if case["id"] == identifier)
    check(case, name, [case["text"]])


@pytest.mark.parametrize(("name", "identifier"), STREAMED)
def test_recorded_chunks(name: str, identifier: str) -> None:
    case = next(case for case in cases("streamed", name) if case["id"] == identifier)
    check(case, name, case["chunks"])


def test_few_cases_are_read_otherwise() -> None:
    listed = [identifier for name in {name for name, _ in PARSED + STREAMED} for identifier in differences(name)]
    known = {identifier for _, identifier in PARSED + STREAMED}
    assert set(listed) <= known
    assert len(listed) < 0.05 * len(known)


def test_every_recorded_format_has_a_family() -> None:
    formats = {path.stem for kind in ("parse", "streamed") for path in (FOLDER / kind).glob("*.json")}
    read = {*format_names("parse"), *format_names("streamed")}
    assert formats == read
