"""What reading a call costs: every family, one call with one long string argument, in chunks of four characters.

    python benchmarks/dialects.py [--json] [--family NAME]

The cost of a chunk at 100,000 and 1,000,000 characters is given as a ratio to the same family's at 1,000; CPU time, the
best of several, taken of the sizes in turn, since a shared machine is now faster and now slower. For Hermes, the peer
is what most engines do at each chunk: cut out the call by its marker and read what there is of its JSON with
`partial-json-parser` (timed at every hundredth chunk, since all would take an hour). `dialects_vllm.py` does the same
with vLLM's own parsers. Memory is the peak while ten million characters are read.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import tracemalloc
from importlib.util import find_spec
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.notation import TextNotation
from ferrule.events import ArgumentsDelta, CallFinished
from ferrule.toolspec import ToolSpec

CHUNK = 4
SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}
ROUNDS = {"1 KB": 20, "100 KB": 2, "1 MB": 1}
TURNS = 3
FLAT, MICROSECONDS, REPARSED, MEMORY = 1.5, 3.0, 1_000, 4.0
SENTENCE = "She sells sea shells on the sea shore, and the shells are nice; "
SAMPLED = 100


def call_of(notation: TextNotation, size: int) -> tuple[ToolCall, list[ToolSpec]]:
    """A call whose one argument is `size` characters long, and its tool."""
    name, key = notation.family.one_tool or ("write_text", "text")
    text = (SENTENCE * (size // len(SENTENCE) + 1))[:size]
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    return ToolCall("call_1", name, json.dumps({key: text})), [ToolSpec(name, "Write a text.", schema)]


def check(notation: TextNotation, size: int) -> None:
    """Raises `SystemExit` where a call isn't read as it was written."""
    call, tools = call_of(notation, size)
    whole = notation.reader(tools)
    events = whole.feed(notation.family.syntax.write([call])) + whole.close(stopped=True)
    found = [event.call for event in events if isinstance(event, CallFinished)]
    if not found or found[0].decode() != call.decode():
        raise SystemExit(f"{notation.name}: the call was not read back")


def microseconds_a_chunk(notation: TextNotation, size: int, rounds: int) -> float:
    """CPU time of a chunk, the best of `rounds`."""
    call, tools = call_of(notation, size)
    text = notation.family.syntax.write([call])
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    best = float("inf")
    for _ in range(rounds):
        reader = notation.reader(tools)
        gc.collect()
        start = time.process_time()
        for chunk in chunks:
            reader.feed(chunk)
        best = min(best, time.process_time() - start)
    return best / len(chunks) * 1e6


def family_row(name: str) -> dict[str, float]:
    """The cost of a chunk at each size, and as ratios to the smallest."""
    notation = get_notation(name)
    costs = dict.fromkeys(SIZES, float("inf"))
    for size in SIZES.values():
        check(notation, size)
    for _ in range(TURNS):
        for label, size in SIZES.items():
            costs[label] = min(costs[label], microseconds_a_chunk(notation, size, ROUNDS[label]))
    small = costs["1 KB"]
    return {**costs, **{f"{label} / 1 KB": costs[label] / small for label in ("100 KB", "1 MB")}}


def first_delta_is_at_once(name: str) -> bool:
    """Whether the value's first character comes out in the feed that brings it."""
    notation = get_notation(name)
    call, tools = call_of(notation, 64)
    text = notation.family.syntax.write([call])
    reader = notation.reader(tools)
    for character in text[: text.index(SENTENCE[:8])]:
        reader.feed(character)
    return any(isinstance(event, ArgumentsDelta) and "S" in event.json_fragment for event in reader.feed("S"))


def reparse_ratio(size: int) -> float:
    """How many times the CPU time of ours a re-parse at each chunk takes, for Hermes."""
    from partial_json_parser import loads  # type: ignore[import-untyped]

    notation = get_notation("hermes")
    call, _ = call_of(notation, size)
    text = notation.family.syntax.write([call])
    opener = notation.family.syntax.openers[0]
    spent = 0.0
    for end in range(CHUNK * SAMPLED, len(text), CHUNK * SAMPLED):
        so_far = text[:end]
        start = time.process_time()
        loads(so_far.partition(opener)[2].partition("</tool_call>")[0].strip() or "{")
        spent += (time.process_time() - start) * SAMPLED
    ours = microseconds_a_chunk(notation, size, 3) * (len(text) / CHUNK) / 1e6
    return spent / ours


def memory_ratio() -> float:
    """The peak of memory while ten million characters of arguments are read, in sizes of the argument."""
    notation = get_notation("hermes")
    size = 10_000_000
    call, tools = call_of(notation, size)
    text = notation.family.syntax.write([call])
    reader = notation.reader(tools)
    tracemalloc.start()
    for at in range(0, len(text), CHUNK):
        reader.feed(text[at : at + CHUNK])
    reader.close(stopped=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / size


def main() -> int:
    """Measure, print, and give 1 where a limit is missed."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--family", action="append")
    options = arguments.parse_args()
    rows = {name: family_row(name) for name in options.family or load_families()}
    late = [name for name in rows if not first_delta_is_at_once(name)]
    median = statistics.median(row["100 KB"] for row in rows.values())
    steepest = max(max(row["100 KB / 1 KB"], row["1 MB / 1 KB"]) for row in rows.values())
    report: dict[str, Any] = {
        "families": rows,
        "median µs a chunk": median,
        "steepest": steepest,
        "first delta late": late,
    }
    if find_spec("partial_json_parser"):
        report["re-parsing / ours, 100 KB"] = reparse_ratio(100_000)
    report["memory / argument, 10 MB"] = memory_ratio()
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        _show(report)
    missed = steepest > FLAT or median > MICROSECONDS or bool(late) or report["memory / argument, 10 MB"] > MEMORY
    return int(missed or report.get("re-parsing / ours, 100 KB", REPARSED) < REPARSED)


def _show(report: dict[str, Any]) -> None:
    rows = report.pop("families")
    print(f"{'family':<20}{'1 KB':>8}{'100 KB':>8}{'1 MB':>8}   µs a chunk; ratio to 1 KB")
    for name, row in rows.items():
        costs = "".join(f"{row[label]:8.2f}" for label in SIZES)
        print(f"{name:<20}{costs}   {row['100 KB / 1 KB']:.2f} {row['1 MB / 1 KB']:.2f}")
    for label, value in report.items():
        print(f"{label}: {value:.2f}" if isinstance(value, float) else f"{label}: {value or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
