"""Lets a person edit the arguments of a call in an editor, as a file that is pleasant to edit.

Where one argument is all that matters, the file holds just that: the text that a file will have, or a command. Else it
holds all arguments as TOML, in which a text of several lines stays readable, or as JSON if TOML can't express them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ferrule.errors import SettingsError
from ferrule.execution.decisions import ApprovalRequest
from ferrule.execution.proposals import to_json_value
from ferrule.tools.intent import Diff

_LONGEST_NAME = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class EditableArguments:
    """The arguments of a call as a text to edit: `name` is that of the file, `argument` the one that it holds."""

    text: str
    name: str
    kind: Literal["argument", "edits", "toml", "json"]
    argument: str
    arguments: Mapping[str, Any]

    @classmethod
    def make(cls, request: ApprovalRequest) -> EditableArguments:
        """Choose what a person edits of a call."""
        preview = request.find_preview()
        content, arguments = preview.content, preview.arguments
        if isinstance(content, Diff):
            name = _make_file_name(content.path)
            for argument, value in arguments.items():
                if isinstance(value, str) and value == content.after:
                    return cls(value, name, "argument", argument, arguments)
            if _holds_edits(arguments.get("edits")):
                return cls(content.after, name, "edits", "edits", arguments)
        elif isinstance(content, str):
            texts = [argument for argument, value in arguments.items() if isinstance(value, str) and value.strip()]
            shown = [argument for argument in texts if str(arguments[argument]).strip() in content]
            longest = max(shown, key=lambda argument: len(str(arguments[argument])), default=None)
            if longest is not None and (preview.is_command or content.strip() == str(arguments[longest]).strip()):
                suffix = ".sh" if preview.is_command else {"code": ".py"}.get(longest, ".txt")
                return cls(
                    str(arguments[longest]), f"{_make_file_name(longest)}{suffix}", "argument", longest, arguments
                )
        try:
            return cls(_write_toml(arguments), "arguments.toml", "toml", "", arguments)
        except TypeError:
            return cls(
                f"{json.dumps(arguments, ensure_ascii=False, indent=2)}\n", "arguments.json", "json", "", arguments
            )

    def parse(self, text: str) -> dict[str, Any] | None:
        """Return the arguments of the edited text; None if nothing was changed. Raises `SettingsError`."""
        # An editor may end the last line, which wasn't meant as a change.
        if text in (self.text, f"{self.text}\n"):
            return None
        if self.kind == "argument":
            is_line = "\n" not in self.text
            return {**self.arguments, self.argument: text.removesuffix("\n") if is_line else text}
        if self.kind == "edits":
            edits = [*self.arguments[self.argument], _find_edit(self.text, text)]
            return {**self.arguments, self.argument: edits}
        return parse_arguments(text, self.kind)


def parse_arguments(text: str, kind: Literal["toml", "json"]) -> dict[str, Any]:
    """Parse all arguments of a call, as a person wrote them. Raises `SettingsError`."""
    try:
        parsed = tomllib.loads(text) if kind == "toml" else json.loads(text)
    except ValueError as error:
        raise SettingsError(f"not valid {kind.upper()}: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"not valid {kind.upper()}: nested too deeply") from error
    if not isinstance(parsed, dict):
        raise SettingsError("not a JSON object")
    return {name: to_json_value(value) for name, value in parsed.items()}


def _make_file_name(path: str) -> str:
    """The last part of a path, without characters that a terminal or a program might take for something else."""
    plain = "".join(one if one.isalnum() or one in "._-" else "_" for one in Path(path).name)[-_LONGEST_NAME:]
    return plain.lstrip("-") or "arguments"


def _holds_edits(value: Any) -> bool:
    """Whether an argument is a list of replacements, made one after the other, each with `old` and `new`."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and {"old", "new"} <= one.keys() for one in value)
    )


def _find_edit(before: str, after: str) -> dict[str, str]:
    """Find the replacement of whole lines that makes `after` of `before`, with lines around it until it is unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    end = next((place for place in range(shorter - start) if old[-1 - place] != new[-1 - place]), shorter - start)
    while True:
        piece = "".join(old[start : len(old) - end])
        if (piece and before.count(piece) == 1) or (start == 0 and end == 0):
            return {"old": piece, "new": "".join(new[start : len(new) - end])}
        start, end = max(0, start - 1), max(0, end - 1)


def _write_toml(arguments: Mapping[str, Any]) -> str:
    """Write arguments as TOML. Raises `TypeError` for a value that TOML can't express."""
    lines = [f"{_write_key(name)} = {_write_value(value, is_top=True)}" for name, value in arguments.items()]
    return "".join(f"{line}\n" for line in lines)


def _write_value(value: Any, is_top: bool = False) -> str:
    match value:
        case bool() | int() | float():
            return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")
        case str() if is_top and "\n" in value:
            # Every quote that might end it is escaped, and so is what an editor would change, such as CR.
            text = "\n".join(_escape(line) for line in value.split("\n"))
            return f'"""\n{text}"""'
        case str():
            return f'"{_escape(value)}"'
        case list():
            return f"[{', '.join(map(_write_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{_write_key(name)} = {_write_value(one)}' for name, one in value.items())}}}"
    raise TypeError(f"TOML has no value for {value!r}")


def _write_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else f'"{_escape(name)}"'


def _escape(text: str) -> str:
    """Escape a line for a basic string of TOML; what can't be seen is escaped too."""
    return "".join(
        f"\\{one}" if one in '"\\'
        else one if one.isprintable()
        else f"\\u{ord(one):04x}" if ord(one) < 0x10000
        else f"\\U{ord(one):08x}"
        for one in text
    )  # fmt: skip
