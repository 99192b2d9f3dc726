"""The result of a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ferrule.blobs import BlobStore
from ferrule.conversation import Image
from ferrule.sandbox.checks import Finding, explain_findings
from ferrule.sandbox.python.wire.display import format_value
from ferrule.sandbox.python.wire.hash_cost import UnhashedDict, UnhashedSet

__all__ = [
    "MB",
    "DataTable",
    "ErrorKind",
    "KeptFile",
    "Opaque",
    "PythonResult",
    "ResourceUsage",
    "RunError",
    "UnhashedDict",
    "UnhashedSet",
    "find_refusal",
]

MB = 1024 * 1024

ErrorKind = Literal[
    "syntax", "exception", "timeout", "memory", "killed", "output", "refused", "lost", "protocol"
]  # fmt: skip
"""`syntax`: the code can't be compiled. `exception`: it raised. `timeout`: it exceeded its wall-clock time.
`memory`: it requested more than its limit. `killed`: its process ended without an answer (a signal, `os._exit`).
`output`: it wrote more than its limit. `refused`: the checks' profile refused it, so nothing ran.
`lost`: the zygote ended while it ran. `protocol`: the process sent something other than an answer."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value without a safe encoding, as its type and its `repr`.

    `reason` is `repr` if the type has no encoding, else what went wrong.
    """

    type: str
    text: str
    reason: str = "repr"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, repr=False)
class DataTable:
    """A data frame or series: its first rows with their index, and its total number of rows."""

    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    index: tuple[Any, ...]
    total_rows: int

    @property
    def is_cut(self) -> bool:
        """Are there more rows than were returned?"""
        return self.total_rows > len(self.rows)

    def __repr__(self) -> str:
        """Cut where it is long; never raises."""
        return format_value(self)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run has no value: its kind, a one-line message, and the traceback through the user's own code.

    `line` is the line of the code (from 1) that failed, if known. `syntax`, `exception` and `memory`, with their
    messages, are reported by the child and can be forged; the parent detects the other kinds.
    """

    kind: ErrorKind
    message: str
    traceback: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return self.traceback or self.message


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Seconds of wall clock and of CPU, and peak resident memory in bytes (including the loaded packages)."""

    wall: float
    cpu: float
    peak_memory: int


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a run left, stored in a `BlobStore`: its name, its size in bytes, its content's name there."""

    name: str
    size: int
    blob: str


@dataclass(frozen=True, slots=True, repr=False)
class PythonResult:
    """The result of one run.

    `value` is that of the last expression, None if the code ends in a statement. Text is decoded with replacement
    characters. `files` are those that the run left in its folder, `images` the figures that it left open, and
    `omitted` lists each part that is returned as its `repr`, cut, or missing (`value['a'][3]: …`).
    """

    value: Any = None
    stdout: str = ""
    stderr: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    error: RunError | None = None
    usage: ResourceUsage = ResourceUsage(0.0, 0.0, 0)
    omitted: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Did it finish without an error?"""
        return self.error is None

    def keep_files(self, blobs: BlobStore) -> tuple[KeptFile, ...]:
        """Store the files that it left by their content; returns references to them, sorted by name."""
        return tuple(KeptFile(name, len(data), blobs.put(data)) for name, data in sorted(self.files.items()))

    def __repr__(self) -> str:
        """Cut where it is long; never raises."""
        return format_value(self)


def find_refusal(findings: tuple[Finding, ...]) -> PythonResult | None:
    """Return the result of a run that the findings refuse, or None if they don't."""
    refusing = [finding for finding in findings if finding.refuses]
    if not refusing:
        return None
    return PythonResult(error=RunError("refused", explain_findings(refusing), line=refusing[0].line), findings=findings)
