"""A family's turns as a declaration: what surrounds each turn when its models are shown whole conversations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class ImageMarkers:
    """How an image is written: its `placeholder`, a control token, between two texts. The ids have the placeholder as
    often as the image's grid asks for. Empty for a model whose images have no ids."""

    placeholder: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Turns:
    """What opens and closes the turns of a conversation, including white space; `FramedDialect` writes them.

    `end` is what the model writes to end its turn, `last` the token at its end if that is not all of it, and
    `calls_end` what it writes after calls if that differs; `after` is what only the system writes, after `end` and
    after a `calls_end` that ends in it. If the next header begins with the text that ended the turn, it is written
    once. `opens` is the part of the model's message that the prompt already writes (`<think>`): every message then
    begins with it. `leads` is white space that the model writes first, `thinks` says that it marks reasoning even if
    there is none, and `unthinking` is what it writes instead in that case. `resumes` replaces the header and `opens`
    after results, if they differ, and `asks` comes before each assistant header when tools are offered.

    `results` surrounds the results of a group, or each of them with `each_result`; `{name}`, `{id}` and `{index}` in it
    are replaced by those of the call. `system` None: the system prompt goes before the first user's text.
    `default_system` is the system prompt of conversations without one, `no_system` the text in its place if there is
    none at all, and `after_system` what opens a user's turn right after one. `offer`: the tools are offered at the end
    of the system prompt, or between `tools`, before or after it; `no_tools` goes there if there are none.

    `spaced_calls`: the white space before calls is written even without text before it; `tight_calls`: it is never
    written; `empty_text`: the markers of text are written with calls even if there is no text; `end_closes_text`: `end`
    replaces the closer of an answer. `inline`: reasoning, calls and their results follow each other in one turn with
    nothing between them, and a call does not end the reasoning. `image` is how an image in a user message is
    written; None if the family has no place for one. `reasons`: messages have a place for reasoning, if the notation
    has. `forbidden_tokens` are those that only the system may write.
    `rewrites_history`: the family's own template later writes earlier turns differently (it may drop reasoning, or move
    the tools). Here history is never rewritten.
    """

    user: tuple[str, str]
    assistant: str
    end: str
    results: tuple[str, str]
    system: tuple[str, str] | None = None
    begin: str = ""
    no_system: str = ""
    default_system: str = ""
    after_system: str | None = None
    last: str = ""
    after: str = ""
    calls_end: str | None = None
    opens: str = ""
    leads: str = ""
    thinks: bool = False
    unthinking: str = ""
    resumes: tuple[str, str] | None = None
    asks: str = ""
    each_result: bool = False
    offer: Literal["in system", "before system", "after system"] = "in system"
    tools: tuple[str, str] = ("", "")
    no_tools: str = ""
    spaced_calls: bool = False
    tight_calls: bool = False
    empty_text: bool = False
    end_closes_text: bool = False
    inline: bool = False
    image: ImageMarkers | None = None
    reasons: bool = True
    stops: tuple[str, ...] = ()
    forbidden_tokens: tuple[str, ...] = ()
    rewrites_history: bool = False

    def get_last_token(self, end: str) -> str:
        """The last token of `end` or `calls_end`."""
        return self.last if self.last and end == self.end else end.strip()

    @property
    def all_stops(self) -> tuple[str, ...]:
        """The tokens with which a model ends its message."""
        ends = (self.get_last_token(self.end), self.get_last_token(self.calls_end or ""), *self.stops)
        return tuple(dict.fromkeys(end for end in ends if end))

    def skip_reasoning(self, written: str = "", leads: str = "") -> Turns:
        """These turns for a model that is asked not to reason: what the prompt writes in place of reasoning is
        `written`, and `leads` is the white space that the model writes after it."""
        return replace(self, assistant=self.assistant + written, opens="", leads=leads, reasons=False)


PLAIN_TURNS = Turns(user=("", ""), assistant="", end="", results=("", ""))
"""Those of a notation without a framing."""
DEEPSEEK = Turns(
    user=("<｜User｜>", ""),
    assistant="<｜Assistant｜>",
    end="<｜end▁of▁sentence｜>",
    results=("", ""),
    system=("", ""),
    begin="<｜begin▁of▁sentence｜>",
    forbidden_tokens=("<｜User｜>", "<｜Assistant｜>"),
    rewrites_history=True,
)
CHATML_MARKERS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
CHATML = Turns(
    user=("<|im_start|>user\n", "<|im_end|>\n"),
    assistant="<|im_start|>assistant\n",
    end="<|im_end|>",
    after="\n",
    results=("<|im_start|>user\n", "<|im_end|>\n"),
    system=("<|im_start|>system\n", "<|im_end|>\n"),
    stops=("<|endoftext|>",),
    forbidden_tokens=("<|im_start|>",),
    rewrites_history=True,
)
LLAMA3 = Turns(
    user=("<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"),
    assistant="<|start_header_id|>assistant<|end_header_id|>\n\n",
    end="<|eot_id|>",
    results=("<|start_header_id|>ipython<|end_header_id|>\n\n", "<|eot_id|>"),
    system=("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"),
    begin="<|begin_of_text|>",
    each_result=True,
    forbidden_tokens=("<|start_header_id|>",),
)
