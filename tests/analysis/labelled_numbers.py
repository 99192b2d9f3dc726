"""Compares the links of `match_numbers` with labels; `python tests/analysis/labelled_numbers.py FILE` prints the rates.

A file holds a list of {"answer", "sources": [{"id", "kind", "text"}], "labels": [{"text", "source", "kind"}]}, with
the labels in the order of the answer. A link is right if it covers the same digits, and names the same source; for a
year or an ordinal, if it is listed as one.

`numbers_labelled_held_out.json` is the half, drawn by chance, of a set that was labelled by somebody who hadn't read
the rules, and `numbers_labelled_fourth.json` the other half, which rules were made with. The held-out half was measured
once (docs/analysis.md has the rates); a rule changed because of it needs another such set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ferrule.analysis.numbers.matching import NumberLink, match_numbers
from ferrule.analysis.numbers.source_numbers import NumberSource

OWN = Path(__file__).with_name("numbers_labelled.json")


@dataclass
class Rates:
    """What was right, what was found in all, what there was to find, and a line for each difference."""

    right: int = 0
    found: int = 0
    labelled: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.found

    @property
    def recall(self) -> float:
        return self.right / self.labelled

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.1%} ({self.right} of {self.found}), "
            f"recall {self.recall:.1%} ({self.right} of {self.labelled})"
        )


def compare(answers: list[dict[str, Any]]) -> Rates:
    """The rates over all numbers of all answers: those with a source, those without one, and those that are listed."""
    rates = Rates()
    for number, case in enumerate(answers, 1):
        sources = [NumberSource(source["id"], source["kind"], source["text"]) for source in case["sources"]]
        links = match_numbers(case["answer"], sources)
        places = list(locate(case["answer"], case["labels"]))
        rates.found += len(links)
        rates.labelled += len(places)
        for (start, end), label in places:
            same = [link for link in links if link.start < end and start < link.end]
            if len(same) == 1 and is_right(same[0], label):
                rates.right += 1
            else:
                rates.differences.append(
                    f"{number}: {label} is {[(link.text, link.source, link.kind) for link in same]}"
                )
        wanted = [place for place, _ in places]
        rates.differences += [
            f"{number}: unlabelled {(link.text, link.source, link.kind)}"
            for link in links
            if not any(link.start < end and start < link.end for start, end in wanted)
        ]
    return rates


def locate(answer: str, labels: list[dict[str, Any]]) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    at = 0
    for label in labels:
        start = answer.index(label["text"], at)
        at = start + len(label["text"])
        yield (start, at), label


def is_right(link: NumberLink, label: dict[str, Any]) -> bool:
    if label["kind"] in {"year", "ordinal"}:
        return link.kind == label["kind"]
    return link.source == label["source"] and link.kind == label["kind"]


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:] or [OWN]):
        rates = compare(json.loads(file.read_text(encoding="utf-8")))
        print(*rates.differences, f"{file.name}: {rates}", sep="\n")
