"""What a run gives back, and the errors that are raised before one begins. Data only."""

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
"""`syntax`: the code can't be compiled. `exception`: it raised. `timeout`: it took longer than its wall clock.
`memory`: it asked for more than its limit. `killed`: its process ended without an answer (a signal, `os._exit`).
`output`: it wrote more than its limit. `refused`: the checks' profile refused it, so that nothing ran.
`lost`: the zygote ended while it ran. `protocol`: what came back was not an answer."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that has no safe encoding, as its type and its `repr`.

    `reason` says why it came back like this: `repr` where the type has no encoding, else what went wrong.
    """

    type: str
    text: str
    reason: str = "repr"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, repr=False)
class DataTable:
    """A data frame or series: the first rows, row by row, with its index and its number of rows in all."""

    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    index: tuple[Any, ...]
    total_rows: int

    @property
    def is_cut(self) -> bool:
        """Are there more rows than came back?"""
        return self.total_rows > len(self.rows)

    def __repr__(self) -> str:
        """Cut where it is long; never raises."""
        return format_value(self)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run has no value: its kind, one line, and the traceback through the user's own code.

    `line` is the line of the code (from 1) where it went wrong, where that is known. `syntax`, `exception`, `memory`
    and what they say are the child's own word; the other kinds are what the parent saw.
    """

    kind: ErrorKind
    message: str
    traceback: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return self.traceback or self.message


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Seconds of wall clock and of CPU, and the peak of resident memory in bytes (what was preloaded included)."""

    wall: float
    cpu: float
    peak_memory: int


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a run left, kept in a `BlobStore`: its name, its bytes in number, the name of its content there."""

    name: str
    size: int
    blob: str


@dataclass(frozen=True, slots=True, repr=False)
class PythonResult:
    """One run of some code.

    `value` is that of the last expression, None where the code ends in a statement. Text is decoded with replacement
    characters. `files` are those that the run left in its folder, `images` the figures that it left open, and
    `omitted` names each part that came back as its `repr`, cut, or not at all (`value['a'][3]: …`).
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
        """Did it run to its end without an error?"""
        return self.error is None

    def keep_files(self, blobs: BlobStore) -> tuple[KeptFile, ...]:
        """Put the files that it left into a store by their content; references to them, in the order of names."""
        return tuple(KeptFile(name, len(data), blobs.put(data)) for name, data in sorted(self.files.items()))

    def __repr__(self) -> str:
        """Cut where it is long; never raises."""
        return format_value(self)


def find_refusal(findings: tuple[Finding, ...]) -> PythonResult | None:
    """The run that the checks' findings keep from being made, if they do."""
    refusing = [finding for finding in findings if finding.refuses]
    if not refusing:
        return None
    return PythonResult(error=RunError("refused", explain_findings(refusing), line=refusing[0].line), findings=findings)
