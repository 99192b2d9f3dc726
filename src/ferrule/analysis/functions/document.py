"""What is known of a function, as data, as JSON and as text; and the curated functions of `curated/*.toml`.

A curated function has a purpose in plain words and questions that it answers. Its signature, parameters, results and
most examples come from introspection.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal


@dataclass(frozen=True, slots=True)
class FunctionDoc:
    """What is known of a function, method or class that code can call by its path.

    `purpose` is one line: ours if the function is curated, else the first paragraph of its docstring. `parameters`
    are pairs of a name and a description. `examples` are lines of code, as sessions (`>>>`) or as statements.
    """

    path: str
    signature: str
    purpose: str
    parameters: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    examples: tuple[str, ...] = ()
    origin: Literal["curated", "introspected"] = "introspected"

    def to_json(self) -> dict[str, Any]:
        """Convert it to JSON data."""
        return {
            "path": self.path,
            "signature": self.signature,
            "purpose": self.purpose,
            "parameters": [{"name": name, "description": description} for name, description in self.parameters],
            "returns": self.returns,
            "examples": list(self.examples),
            "origin": self.origin,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FunctionDoc:
        """Convert it from what `to_json` returned. Raises `KeyError` or `TypeError` for anything else."""
        parameters = tuple((str(each["name"]), str(each["description"])) for each in data["parameters"])
        return cls(
            data["path"],
            data["signature"],
            data["purpose"],
            parameters,
            data["returns"],
            tuple(data["examples"]),
            data["origin"],
        )

    def render(self) -> str:
        """Write all of it as plain text, for a model or a person."""
        lines = [f"{self.path}{self.signature}", f"  {self.purpose}"]
        if self.parameters:
            lines += ["  Parameters:", *(f"    {name}: {text}".rstrip(": ") for name, text in self.parameters)]
        if self.returns:
            lines += [f"  Returns: {self.returns}"]
        if self.examples:
            lines += ["  Examples:"]
            lines += [f"    {line}".rstrip() for example in self.examples for line in example.splitlines()]
        return "\n".join(lines)


FOLDER: Final = Path(__file__).with_name("curated")


@dataclass(frozen=True, slots=True)
class CuratedFunction:
    """A curated function: its path, its purpose on one line, and ways of asking for it.

    The other fields are for what introspection doesn't find, and empty where it does.
    """

    path: str
    purpose: str
    asks: tuple[str, ...]
    signature: str = ""
    returns: str = ""
    example: str = ""


def load_curated_functions() -> list[CuratedFunction]:
    """Read all curated functions, by file and in the files' order."""
    return [
        CuratedFunction(
            path,
            entry["purpose"],
            tuple(entry["asks"]),
            entry.get("signature", ""),
            entry.get("returns", ""),
            entry.get("example", "").strip(),
        )
        for file in sorted(FOLDER.glob("*.toml"))
        for path, entry in tomllib.loads(file.read_text(encoding="utf-8")).items()
    ]


def read_curated_files() -> bytes:
    """All files of curated functions, unparsed: what a cache of them depends on."""
    return b"".join(file.read_bytes() for file in sorted(FOLDER.glob("*.toml")))
