"""What is known of a function, as data, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


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
