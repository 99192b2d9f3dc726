"""What a layout may train, found without looking at how it was made.

Each part of a conversation is a word of its own, so that its place in a layout tells whose it is. What an assistant
wrote must be trained, all else must not; around the words, what is trained is compared with the generation prompt and
with what the dialect's own reader reads in it.
"""

import json
from dataclasses import dataclass, field, replace

from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.segments import Content, Control
from ferrule.events import CallFinished, CallMalformed, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

IMAGE = Image(b"no picture", "image/png")
# How results are worded, the words `{}` among them: one that looks like an answer, JSON, lines, blank edges.
RESULTS = ("{}", '{{"said": "{}"}}', "Error: {}\nat line 1", "  {}\n", "assistant: {}", "{} [1, 2]")


@dataclass
class Words:
    """Gives out words, and remembers whose they are: `own` of an assistant's message, by its place, or of others."""

    own: dict[str, int] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    count: int = 0

    def word(self, owner: int | None = None) -> str:
        """A new word; `owner` is the place of the assistant's message that it is of."""
        self.count += 1
        letters = "".join(chr(ord("a") + (self.count * step) % 26) for step in (1, 3, 7, 5, 11, 17))
        word = f"w{letters}{self.count}w"
        if owner is None:
            self.others.append(word)
        else:
            self.own[word] = owner
        return word


def conversation_of(kinds, capabilities, one_tool=None):
    """A conversation and its `Words`, from a list of what happens.

    `kinds` are letters: u a user, i one who shows an image, s a system prompt; for an assistant's message a string of
    r (reasoning), t (text), c (a call), i (its results are images too), m (a malformed call), e (text
    that is empty). What the dialect has no place for is left out.
    """
    words, messages, calls, results = Words(), [], 0, 0
    name, key = one_tool or ("weather", "city")
    for kind in kinds:
        at = len(messages)
        if kind in "usi":
            said = [words.word(), IMAGE] if kind == "i" else [words.word()]
            messages.append(system(*said) if kind == "s" else user(*said))
            continue
        parts, answers = [], []
        images = [IMAGE] * kind.count("i")
        for letter in _fitted(kind.replace("i", ""), capabilities):
            calls += letter in "cm"
            call_id = f"call_{calls}"
            if letter == "r":
                parts.append(Reasoning(words.word(at)))
            elif letter in "te":
                parts.append(Text(words.word(at) if letter == "t" else ""))
            elif letter == "c":
                parts.append(ToolCall(call_id, name, json.dumps({key: words.word(at)})))
                answers.append((call_id, name))
            elif letter == "m":
                parts.append(MalformedCall(call_id, words.word(), "truncated"))
                answers.append((call_id, ""))
        messages.append(assistant(*parts))
        for call_id, called in answers:
            results += 1
            said = Text(RESULTS[results % len(RESULTS)].format(words.word()))
            status = "ok" if results % 3 else "error"
            messages.append(tool_message(ToolResult(call_id, called, (said, *images), status)))
    return Conversation(tuple(messages)), words


def _fitted(kind, capabilities):
    if not capabilities.reasoning:
        kind = kind.replace("r", "")
    if not capabilities.parallel_calls:
        kind = kind[: kind.find("c") + 1] + kind[kind.find("c") :].replace("c", "") if "c" in kind else kind
    if not capabilities.text_beside_calls and ("c" in kind or "m" in kind):
        kind = kind.replace("t", "").replace("e", "")
    return kind or "t"


def family_of(dialect):
    """The family of a dialect; of one that was written by hand, the one of its name."""
    notation = dialect.notation if hasattr(dialect, "notation") else get_notation(dialect.name)
    return notation.family


def tool_for(one_tool=None):
    """The tool that is called, whose description is nobody's to learn."""
    name, key = one_tool or ("weather", "city")
    schema = {"type": "object", "properties": {key: {"type": "string", "description": "wdescriptionw"}}}
    return ToolSpec(name, "wtoolw", schema)


def marked(segments):
    """The text of segments, and a flag for each of its characters."""
    text = "".join(s.text for s in segments if isinstance(s, Control | Content))
    flags = [s.trained for s in segments if isinstance(s, Control | Content) for _ in s.text]
    return text, flags


def runs(segments):
    """What is trained without a break, as texts; a generation point is a break, also where no header is written."""
    found, is_open = [], False
    for segment in segments:
        is_trained = isinstance(segment, Control | Content) and segment.trained
        if is_trained:
            found[len(found) - is_open :] = [(found[-1] if is_open else "") + segment.text]
        is_empty = isinstance(segment, Control | Content) and not segment.text
        is_open = is_trained or (is_open and is_empty and not getattr(segment, "ends_run", False))
    return found


def faults(dialect, conversation, words, tools=()):
    """What is wrong with the mask of a layout, in words; nothing where it is right."""
    layout = dialect.layout(conversation, tools)
    text, flags = marked(layout.segments)
    found = []
    for word in (*words.others, "wtoolw", "wdescriptionw"):
        found += [f"{word} of others is trained" for at in _places(text, word) if any(flags[at : at + len(word)])]
    for word, owner in words.own.items():
        places = _places(text, word)
        if places and not any(all(flags[at : at + len(word)]) for at in places):
            found.append(f"{word} of message {owner} is not trained")
    for run in runs(layout.segments):
        owners = {owner for word, owner in words.own.items() if word in run}
        if len(owners) > 1:
            found.append(f"messages {sorted(owners)} are trained in one run: {run!r}")
        found += [f"{marker!r} is trained: {run!r}" for marker in _of_the_system(dialect, layout) if marker in run]
    return found + _of_messages(dialect, conversation, tools)


def _of_the_system(dialect, layout):
    """The header that a prompt writes, without reasoning's markers, and the markers that only the system writes."""
    header = "".join(s.text for s in layout.prompt)
    prose = family_of(dialect).message
    thinking = prose.thinking
    for marker in (thinking.open, thinking.close) if thinking else ():
        header = header.split(marker)[0]
    forbidden_tokens = [
        stray
        for stray in layout.forbidden_tokens
        if stray not in layout.stops and not (thinking and stray == thinking.open)
    ]
    # Where each part of a message has a header, the model writes all but the first of them.
    return [marker for marker in (header.strip(), *forbidden_tokens) if marker and marker not in prose.between]


def _places(text, word):
    at, found = text.find(word), []
    while at >= 0:
        found.append(at)
        at = text.find(word, at + 1)
    return found


def _of_messages(dialect, conversation, tools):
    """What is wrong with the mask of each message when nothing follows it: as the model would have written it."""
    found = []
    for at, message in enumerate(conversation.messages):
        if message.role != "assistant" or any(isinstance(part, MalformedCall) for part in message.parts):
            continue
        until = dialect.layout(replace(conversation, messages=conversation.messages[: at + 1]), tools)
        text, flags = marked(until.segments)
        start = _start_of(dialect, conversation, at, tools, until)
        said = "".join(c for c, is_trained in zip(text[start:], flags[start:], strict=True) if is_trained)
        if not any(end in said for end in (*until.stops, *_ends(dialect))):
            found.append(f"no end of message {at} is trained: {said!r}")
        if said not in text[start:]:
            found.append(f"message {at} is not trained as one: {said!r}")
        reader = dialect.reader(tools or [tool_for(family_of(dialect).one_tool)], opens=text[:start])
        found += [
            f"the {what} of message {at} reads {read!r}, not {wanted!r}, in {said!r}"
            for what, (read, wanted) in _read(reader.feed(said) + reader.close(stopped=True), message).items()
            if read != wanted and (not isinstance(wanted, str) or wanted in text)
        ]
    return found


def _ends(dialect):
    """What the messages of a family end with where that is no stop: its models write an end of text after it."""
    turns = getattr(dialect, "turns", None)
    return [turns.end] if turns is not None and turns.last else []


def _start_of(dialect, conversation, at, tools, until):
    """Where in a layout that ends with a message that message begins."""
    if not dialect.rewrites_history:
        # The prompt is a prefix of what follows it; it may be empty, the turn being open.
        asked = dialect.layout(replace(conversation, messages=conversation.messages[:at]), tools)
        return len(marked(asked.with_prompt)[0])
    heads = [place for place, s in enumerate(until.segments) if isinstance(s, Control) and s.ends_run]
    return len(marked(until.segments[: heads[-1] + 1])[0]) if heads else 0


def _read(events, message):
    """What a reader finds of a message, and what it should."""
    return {
        "text": ("".join(e.text for e in events if isinstance(e, TextDelta)).strip(), message.text),
        "reasoning": (
            "".join(e.text for e in events if isinstance(e, ReasoningDelta)).strip(),
            "".join(part.text for part in message.parts if isinstance(part, Reasoning)),
        ),
        "calls": (
            [(e.call.name, e.call.decode()) for e in events if isinstance(e, CallFinished)]
            + [(e.kind, e.raw) for e in events if isinstance(e, CallMalformed)],
            [(call.name, call.decode()) for call in message.calls],
        ),
    }
