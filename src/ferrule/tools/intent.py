"""What a call would do, as data: what a policy judges and a person is shown before the call runs.

    def preview_write(arguments: Mapping[str, Any]) -> Intent:
        path = str(arguments["path"])
        return Intent((Effect("write", path),), Diff(path, read(path), str(arguments["text"])))

    @tool(intent=preview_write)
    def write(path: str, text: str) -> str: ...

`execution/policy.py` judges intents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

EffectKind = Literal["read", "write", "run", "net"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing a call would do. `target` is a path, a command line or an address, by kind."""

    kind: EffectKind
    target: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """A change to the text at `path`: all of it `before` and `after`; a new file has an empty `before`."""

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        """The change as a unified diff, with three lines of context and no line end after its last line."""
        # It is slow to import, and only a person who is asked reads it.
        from difflib import unified_diff

        names = f"a/{self.path}", f"b/{self.path}"
        lines = unified_diff(_split_lines(self.before), _split_lines(self.after), *names, lineterm="")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A picture by reference: `hash` is the name under which the call's `scope.blobs` keeps its bytes."""

    hash: str
    media_type: str = "image/png"

    def __str__(self) -> str:
        return f"[image {self.hash}, {self.media_type}]"


Preview: TypeAlias = str | Diff | ImageRef
"""What a person is shown of a call before it runs; `str(preview)` is its text, for a screen without pictures."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Everything a call would do.

    `preview` is for people: text (a command line), a `Diff`, or an `ImageRef`; an empty text shows nothing.
    `precondition` names the state that the call relies on, such as a file's hash: where it has changed before an
    approved call runs, the call isn't run. `asks` makes this one call wait for approval, also where a rule or the
    profile would let it run, as `approval="always"` does for a tool.
    """

    effects: tuple[Effect, ...] = ()
    preview: Preview = ""
    precondition: str | None = None
    asks: bool = False


IntentFunction: TypeAlias = Callable[..., Intent | Awaitable[Intent]]
"""Gets the validated arguments as a dict and says what the call would do; a Toolset's method gets `self` first."""


def preview_to_json(preview: Preview) -> Any:
    """A preview as JSON: a text as itself, the others as objects."""
    if isinstance(preview, Diff):
        return {"diff": preview.path, "before": preview.before, "after": preview.after}
    if isinstance(preview, ImageRef):
        return {"image": preview.hash, "media_type": preview.media_type}
    return preview


def preview_from_json(data: Any) -> Preview:
    """The preview that `preview_to_json` wrote. Raises `LookupError` or `TypeError` for anything else."""
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping):
        raise TypeError(f"a preview is a text or an object, not {data!r}")
    if "diff" in data:
        return Diff(data["diff"], data["before"], data["after"])
    return ImageRef(data["image"], data["media_type"])


def _split_lines(text: str) -> list[str]:
    """Lines without their ends; one that ends without a line end says so, as in `diff`'s own output."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
