"""What came of one payload: all that it gave back, and how the run went."""

from dataclasses import dataclass, field

# More than what the sandbox says it gives back at most: 32 MB of files or values.
FLOOD = 36_000_000
MANY_FILES = 500


@dataclass(slots=True)
class Outcome:
    """Of one payload, in a plain subprocess or in the sandbox."""

    text: bytes = b""
    """Everything that came back to the parent."""

    next_text: bytes = b""
    """Everything that came back of the run after it."""

    files: int = 0
    """How many files came back."""

    is_lost: bool = False
    """Whether the process that the runs are forked from ended. Of a session that is an answer among others."""

    hits: dict[str, str] = field(default_factory=dict)
    """What the running itself showed: by canary, how."""

    def flood(self) -> str:
        """How much more came back than anyone wants, or nothing."""
        if len(self.text) > FLOOD:
            return f"{len(self.text):,} bytes came back"
        return f"{self.files} files came back" if self.files > MANY_FILES else ""
