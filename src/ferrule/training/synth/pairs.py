"""Joins two requests into one that asks for both, and their answers."""

import random

from ferrule.training.synth.example import Turn
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

_LONGEST = 90
_JOINTS = (
    "? ", "? And ", "? and ", ". ", ". And ", ". Then ", "; ", "\n", ", and ", " and ", " and also ", ", also ",
    " and then ", "? Also, ", "! And ", ". Also ", ". Next: ",
)  # fmt: skip
# Between a text without quotes and what follows only a sentence's end shows where the text ends.
_CLEAR_JOINTS = ("? ", "? And ", "? Also, ", "\n")
_END = " .?!,;:"
_FRAME_WORDS = frozenset(
    split_words(
        "what what's whats how calculate compute count reverse add subtract multiply divide spell give tell find work"
        " which is do could can please so and"
    )
)


def join_turns(rng: random.Random, first: Turn, second: Turn) -> Turn | None:
    """One turn that asks for both and answers both in their order; None if they are too long, or don't end clearly."""
    if len(first.user) > _LONGEST or len(second.user) > _LONGEST or not first.steps or not second.steps:
        return None
    is_text = any('"' in step.call for turn in (first, second) for step in turn.steps)
    joints = _CLEAR_JOINTS if is_text else _JOINTS
    joint = pick(rng, joints)
    head = first.user.rstrip(_END)
    tail = second.user
    word = tail.split(" ", 1)[0]
    if joint[-1] == " " and joint[0] not in "?.!" and word.lower() in _FRAME_WORDS:
        tail = tail[:1].lower() + tail[1:]
    if not head or head[-1] in "=-+*/":
        return None
    return Turn(head + joint + tail, first.steps + second.steps, f"{first.reply} {second.reply}")
