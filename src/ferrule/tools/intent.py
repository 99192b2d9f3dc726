"""What a call would do, as data: policies judge it, and a person sees it before the call runs.

    def preview_write(arguments: Mapping[str, Any]) -> Intent:
        path = str(arguments["path"])
        return Intent((Effect("write", path),), Diff(path, read(path), str(arguments["text"])))

    @tool(intent=preview_write)
    def write(path: str, text: str) -> str: ...

`execution/policy.py` judges intents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, Literal, NoReturn, TypeAlias

from ferrule._util.quick_init import checked_init
from ferrule._util.spliced_bytes import EncodedText, decode_text
from ferrule.errors import PolicyError

EffectKind = Literal["read", "write", "run", "net"]


def _refuse_kind(kind: object) -> NoReturn:
    raise PolicyError(f"the kind of an Effect must be read, write, run or net, not {kind!r}")


def _read_target(target: object) -> str:
    if not isinstance(target, str | PathLike):
        raise PolicyError(f"the target of an Effect must be a text or a path, not {target!r}")
    return str(target)


@checked_init(
    kind=("kind in ('read', 'write', 'run', 'net')", _refuse_kind), target=("target.__class__ is str", _read_target)
)
@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a call would do. `target` is a path, a command line or an address, depending on the kind.

    `words` are those of the one program that has this effect, if it comes from a command line and they are all known:
    rules for commands match them. `is_protected`: the target is a place that the sandbox protects, such as `.git`; of
    `run`, it is a command line that can't be judged. Every profile but `all` asks about these. `is_recursive`: what is
    below the target may be read or written, too, so that a rule which denies or asks about a path there counts.
    """

    kind: EffectKind
    target: str = ""
    words: tuple[str, ...] = ()
    is_protected: bool = False
    is_recursive: bool = False


class Diff:
    """A change to the file at `path`: its complete text `before` and `after`; `before` is empty for a new file.

    A text may be given in UTF-8; it is decoded when it is used, which for a large file nobody may do.
    """

    __slots__ = ("_after", "_before", "path")

    def __init__(self, path: str, before: EncodedText, after: EncodedText) -> None:
        self.path: Final = path
        self._before: Final = before
        self._after: Final = after

    @property
    def before(self) -> str:
        """The text before the change."""
        return decode_text(self._before)

    @property
    def after(self) -> str:
        """The text after the change."""
        return decode_text(self._after)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Diff):
            return NotImplemented
        return (self.path, self.before, self.after) == (other.path, other.before, other.after)

    def __hash__(self) -> int:
        return hash((self.path, self.before, self.after))

    def __repr__(self) -> str:
        return f"Diff(path={self.path!r}, before={self.before!r}, after={self.after!r})"

    def __str__(self) -> str:
        """The change as a unified diff, with three lines of context and no newline at its end."""
        # Only needed when a person is asked.
        from ferrule._util.line_diff import diff_texts

        path = self.path.lstrip("/")
        lines = diff_texts(self._before, self._after)
        return "\n".join([f"--- a/{path}", f"+++ b/{path}", *lines] if lines else [])


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image by reference: `hash` is its name in the call's `scope.blobs`."""

    hash: str
    media_type: str = "image/png"

    def __str__(self) -> str:
        return f"[image {self.hash}, {self.media_type}]"


Preview: TypeAlias = str | Diff | ImageRef
"""What a person sees of a call before it runs; `str(preview)` is its text, for a display without images."""


def _collect_effects(effects: object) -> tuple[Effect, ...]:
    """The effects of an intent that aren't given as a tuple. Raises `PolicyError`."""
    if isinstance(effects, Effect):
        return (effects,)
    if isinstance(effects, str | Mapping) or not isinstance(effects, Iterable):
        raise PolicyError(f"an Intent takes a tuple of Effects, not {effects!r}")
    return tuple(effects)


@checked_init(effects=("effects.__class__ is tuple", _collect_effects))
@dataclass(frozen=True, slots=True)
class Intent:
    """Everything a call would do.

    `preview` is for people: text (a command line), a `Diff`, or an `ImageRef`; an empty text shows nothing.
    `precondition` identifies the state that the call relies on, such as a file's hash: if it changes before an approved
    call runs, the call isn't run. `asks` makes this call wait for approval, even if a rule or the profile would allow
    it, like `approval="always"` for a tool.
    """

    effects: tuple[Effect, ...] = ()
    preview: Preview = ""
    precondition: str | None = None
    asks: bool = False


IntentFunction: TypeAlias = Callable[..., Intent | Awaitable[Intent]]
"""Receives the validated arguments as a dict and returns what the call would do; a method gets `self` first."""

is_judged_again: ContextVar[bool] = ContextVar("is_judged_again", default=False)
"""Whether the intent function is called once more for the same call: one before it may have changed its outcome."""


def preview_to_json(preview: Preview) -> Any:
    """A preview as JSON: a text as a string, the others as objects."""
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
