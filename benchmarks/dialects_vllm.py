"""What reading a call costs in vLLM's own parsers, beside ours: Hermes and Qwen3-Coder, in chunks of four characters.

    pip download vllm --no-deps && unzip vllm-*.whl 'vllm/*.py' -d SOURCE
    pip install openai regex partial-json-parser
    python benchmarks/dialects_vllm.py SOURCE [--size 100000] [--json]

vLLM wants gigabytes of packages, of which its parsers use hardly any. So its source is read from a folder: the
`__init__` of its packages isn't run, and its modules in `STAND_INS`, and the `PACKAGES` that are not installed, are
replaced by modules of empty classes. All that a parser runs for a chunk is its own, down to the pydantic messages that
it answers with, but for two things: the id of a call is a constant, and no tokenizer is Mistral's. That its answers
make up the arguments that were written is checked each time.

Each marker is a token and a piece of its own, for both; the tokens of vLLM's tokenizer are the pieces. Of theirs only
`extract_tool_calls_streaming` is timed, not the making of the texts and lists of ids that it is given.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from dialects import CHUNK, call_of
from ferrule.dialects.catalogue import get_notation
from ferrule.toolspec import ToolSpec

PACKAGES = (
    "fastapi",
    "ijson",
    "mistral_common",
    "msgspec",
    "openai_harmony",
    "prometheus_client",
    "torch",
    "transformers",
    "xgrammar",
)
STAND_INS = (
    "config",
    "entrypoints.chat_utils",
    "outputs",
    "renderers.chat_utils",
    "sampling_params",
    "tokenizers",
    "utils",
)
# Of each family the newest parser first.
PARSERS = {
    "hermes": (("hermes_tool_parser", "Hermes2ProToolParser"),),
    "qwen3_coder": (
        ("qwen3_engine_tool_parser", "Qwen3EngineToolParser"),
        ("qwen3coder_tool_parser", "Qwen3CoderToolParser"),
    ),
}
TIMES = {"hermes": 50, "qwen3_coder": 10}
PROMISED_AT = 100_000
ROUNDS = 4
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_start|>", "<|im_end|>")


class _Empty(type):
    """Makes classes that stand for any class: pydantic takes everything for them, and their instances are false."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)

    def __getitem__(cls, _: object) -> Any:
        return cls


def _empty(name: str) -> Any:
    from pydantic_core import core_schema

    return _Empty(
        name,
        (),
        {
            "__init__": lambda *_, **__: None,
            "__init_subclass__": classmethod(lambda *_, **__: None),
            "__call__": lambda *_, **__: None,
            "__bool__": lambda _: False,
            "__getattr__": lambda _, name: _empty(name)(),
            "__get_pydantic_core_schema__": classmethod(lambda *_: core_schema.any_schema()),
        },
    )


class _StandIn(ModuleType):
    """A module of which only the names are there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "make_tool_call_id":
            return lambda *_, **__: "call_1"
        return _empty(name)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a stand-in for each module for which `folders` does: where its submodules are, if it has real ones."""

    def __init__(self, folders: Callable[[str], Sequence[Path] | None]) -> None:
        self._folders = folders

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """The stand-in for a module, or None where it is to be imported as ever."""
        folders = self._folders(fullname)
        if folders is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.submodule_search_locations = list(map(str, folders))
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


def make_importable(source: Path) -> None:
    """Let `import vllm...` find the source, and stand-ins for what its parsers import and don't need."""

    def of_vllm(name: str) -> Sequence[Path] | None:
        top, _, inner = name.partition(".")
        if top != "vllm":
            return None
        if any(inner == one or inner.startswith(f"{one}.") for one in STAND_INS):
            return ()
        folder = source / name.replace(".", "/")
        return (folder,) if folder.is_dir() else None

    sys.meta_path.insert(0, StandIns(of_vllm))
    # At the end, so that it is asked only for what is not installed.
    sys.meta_path.append(StandIns(lambda name: () if name.partition(".")[0] in PACKAGES else None))


class Tokenizer:
    """A tokenizer whose tokens are these pieces of text."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = list(dict.fromkeys(pieces))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}

    def get_vocab(self) -> dict[str, int]:
        """Every token and its id."""
        return self._ids

    def encode(self, text: str, **_: object) -> list[int]:
        """The one token that a piece is."""
        return [self._ids[text]]

    def decode(self, ids: Iterable[int], **_: object) -> str:
        """The text of tokens."""
        return "".join(self._pieces[one] for one in ids)


def parser_class(family: str) -> Any:
    """vLLM's parser of a family. Raises `SystemExit` where there is none in this release."""
    for module, name in PARSERS[family]:
        if importlib.util.find_spec(f"vllm.tool_parsers.{module}"):
            return getattr(importlib.import_module(f"vllm.tool_parsers.{module}"), name)
    raise SystemExit(f"this release of vLLM has no parser for {family} that this benchmark knows")


def pieces_of(text: str) -> list[str]:
    """A text in chunks, each marker by itself."""
    parts = re.split(f"({'|'.join(map(re.escape, MARKERS))})", text)
    long = [(part, len(part) if part in MARKERS else CHUNK) for part in parts]
    return [part[at : at + size] for part, size in long for at in range(0, len(part), size)]


def request_of(tools: Sequence[ToolSpec]) -> Any:
    """What of a request the parsers look at."""
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    offered = [{"name": spec.name, "parameters": dict(spec.parameters)} for spec in tools]
    param = protocol.ChatCompletionToolsParam
    return SimpleNamespace(tools=[param.model_validate({"type": "function", "function": one}) for one in offered])


def theirs(family: str, pieces: Sequence[str], tools: Sequence[ToolSpec]) -> tuple[float, str]:
    """(the CPU seconds that vLLM's parser takes, the arguments that it passed on)."""
    tokenizer, request = Tokenizer((*MARKERS, *pieces)), request_of(tools)
    parser = parser_class(family)(tokenizer, request.tools)
    ids = [tokenizer.get_vocab()[piece] for piece in pieces]
    spent, so_far = 0.0, ""
    said: list[str] = []
    for number, piece in enumerate(pieces):
        before, so_far = so_far, so_far + piece
        told = (before, so_far, piece, ids[:number], ids[: number + 1], ids[number : number + 1], request)
        start = time.process_time()
        answer = parser.extract_tool_calls_streaming(*told)
        spent += time.process_time() - start
        said += [call.function.arguments or "" for call in (answer.tool_calls if answer else ()) if call.function]
    return spent, "".join(said)


def ours(family: str, pieces: Sequence[str], tools: Sequence[ToolSpec]) -> float:
    """The CPU seconds that our reader takes, the best of several."""
    best = float("inf")
    for _ in range(ROUNDS):
        reader = get_notation(family).reader(tools)
        start = time.process_time()
        for piece in pieces:
            reader.feed(piece)
        best = min(best, time.process_time() - start)
    return best


def row(family: str, size: int) -> dict[str, float]:
    """Microseconds a chunk of both, and how many times ours theirs is. Raises `SystemExit` where a call was misread."""
    notation = get_notation(family)
    call, tools = call_of(notation, size)
    pieces = pieces_of(notation.family.syntax.write([call]))
    spent, arguments = theirs(family, pieces, tools)
    if json.loads(arguments) != call.decode():
        raise SystemExit(f"vLLM's parser for {family} did not pass on the arguments that were written")
    our_own = ours(family, pieces, tools)
    in_chunks = 1e6 / len(pieces)
    return {"vLLM": spent * in_chunks, "ours": our_own * in_chunks, "times": spent / our_own}


def main() -> int:
    """Measure, print, and give 1 where a limit is missed."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("source", nargs="?", type=Path, help="the folder that holds vLLM's folder vllm")
    arguments.add_argument("--size", type=int, default=100_000)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    if options.source is None:
        print("nothing to compare with: name a folder with vLLM's source")
        return 0
    make_importable(options.source)
    version = importlib.import_module("vllm.version").__version__
    rows = {family: row(family, options.size) for family in PARSERS}
    if options.json:
        print(json.dumps({"vLLM": version, "size": options.size, "families": rows}))
    else:
        print(f"{options.size:,} characters, vLLM {version}: µs a chunk")
        for family, one in rows.items():
            print(f"{family:<12} vLLM {one['vLLM']:9.2f}   ours {one['ours']:5.2f}   {one['times']:,.0f} times")
    return int(options.size == PROMISED_AT and any(one["times"] < TIMES[name] for name, one in rows.items()))


if __name__ == "__main__":
    sys.exit(main())
