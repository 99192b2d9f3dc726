"""How a family's models are shown whole conversations: what stands around each turn, as a declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Turns:
    """What opens and closes the turns of a conversation, white space included; `FramedDialect` writes them.

    `end` is what the model writes when its turn is over, `last` the token in which it ends where that is not all of
    it, and `calls_end` what it writes after calls where that differs; `after` is white space that only the system
    writes. `opens` is what the prompt writes of the model's own message already (`<think>`): every message then
    begins with it. `leads` is white space that the model writes first, `thinks` says that it marks reasoning also
    where there is none. `resumes` stands for the header and `opens` after results, where they differ.

    `results` stands around the results of a group, or around each of them where `each_result`; `{name}`, `{id}` and
    `{index}` stand in it for those of the call. `system` None: the system prompt stands before the first user's text.
    `offer`: the tools are told of at the end of the system prompt, or after it, apart from all turns.

    `ends_in_header`: no token ends the assistant's turn but the next header's first, which the model writes (GLM).
    `spaced_calls`: the white space before calls is also written where no text is before it; `empty_text`: the markers
    of text stand beside calls also where there is none. `strays` are tokens that only the system writes.
    `rewrites_history`: the family's own template writes earlier turns otherwise later on (it may drop reasoning, or
    move the tools). Here history always stays as it was written.
    """

    user: tuple[str, str]
    assistant: str
    end: str
    results: tuple[str, str]
    system: tuple[str, str] | None = None
    begin: str = ""
    last: str = ""
    after: str = ""
    calls_end: str | None = None
    opens: str = ""
    leads: str = ""
    thinks: bool = False
    resumes: tuple[str, str] | None = None
    each_result: bool = False
    offer: Literal["system", "apart"] = "system"
    ends_in_header: bool = False
    spaced_calls: bool = False
    empty_text: bool = False
    stops: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    rewrites_history: bool = False

    def token_of(self, end: str) -> str:
        """The token in which `end`, or `calls_end`, ends."""
        return self.last if self.last and end == self.end else end.strip()

    @property
    def all_stops(self) -> tuple[str, ...]:
        """The tokens with which a model ends its message."""
        ends = (self.token_of(self.end), self.token_of(self.calls_end or ""), *self.stops)
        return tuple(dict.fromkeys(end for end in ends if end))


DEEPSEEK = Turns(
    user=("<｜User｜>", ""),
    assistant="<｜Assistant｜>",
    end="<｜end▁of▁sentence｜>",
    results=("", ""),
    system=("", ""),
    begin="<｜begin▁of▁sentence｜>",
    strays=("<｜User｜>", "<｜Assistant｜>"),
    rewrites_history=True,
)
CHATML = Turns(
    user=("<|im_start|>user\n", "<|im_end|>\n"),
    assistant="<|im_start|>assistant\n",
    end="<|im_end|>",
    after="\n",
    results=("<|im_start|>user\n", "<|im_end|>\n"),
    system=("<|im_start|>system\n", "<|im_end|>\n"),
    stops=("<|endoftext|>",),
    strays=("<|im_start|>",),
    rewrites_history=True,
)
