"""Draws one turn from a section: values for its slots, the request, the call, its output, the reply."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.arithmetic.evaluate import calculate
from ferrule.training.synth.conditions import Condition, Value
from ferrule.training.synth.example import Step, Turn
from ferrule.training.synth.expressions import Expression, NumberList, draw_expression, draw_list
from ferrule.training.synth.grammar import (
    TEXT_SLOTS,
    Field,
    Fields,
    Phrasing,
    Section,
    Slot,
    expand,
    find_slots,
    strip_number,
)
from ferrule.training.synth.noise import Piece, add_noise
from ferrule.training.synth.number_words import write_number, write_ordinal
from ferrule.training.synth.numbers import Hint, Number, draw_number
from ferrule.training.synth.parsing import find_needed
from ferrule.training.synth.replies import write_call, write_reply
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import (
    count_call,
    draw_letter,
    draw_phrase,
    draw_word,
    list_names,
    list_things,
    number_fits,
    quote,
)  # fmt: skip

GENERIC_ERROR = "Sorry, that can't be worked out: {e}."
LONGEST_RESULT = 40
_ANY = Hint()
_PERCENT = Hint("percent")
_QUOTES = "\"'“‘«`*"
_LETTER_COUNT = re.compile(r'"\{(\w+)\}"\.count\("\{(letter\d*)\}"\)')
_TRIES = 200


@dataclass(slots=True)
class DrawnValues:
    """Values of a turn's slots by name: numbers, texts (words, names, entries of lists), expressions, lists of numbers.

    `letters_said` are letters in the case that the user writes, and ordinals as the user writes them.
    """

    sayable: bool
    numbers: dict[str, Number] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    expressions: dict[str, Expression] = field(default_factory=dict)
    lists: dict[str, NumberList] = field(default_factory=dict)
    letters_said: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A section with everything that can be computed before drawing."""

    section: Section
    needed: tuple[str, ...]
    letter_counts: tuple[tuple[str, str], ...]
    letters_only: bool
    raw_result: bool


def plan_section(section: Section) -> TurnPlan:
    """What drawing from a section needs, computed once."""
    needed = find_needed(section)
    if section.opening is not None:
        needed |= find_slots(section.opening.node)
    if section.where:
        needed |= section.where.names - {"prev"}
    template = "".join(piece if isinstance(piece, str) else f"{{{piece.name}}}" for piece in section.call or ())
    second = "".join(piece if isinstance(piece, str) else f"{{{piece.name}}}" for piece in section.second or ())
    reply = "".join(piece for piece in section.reply if isinstance(piece, str))
    return TurnPlan(
        section,
        tuple(sorted(needed)),
        tuple((match[1], match[2]) for match in _LETTER_COUNT.finditer(template + second)),
        section.kind == "length" and "letters" in reply,
        template.endswith("]"),
    )


def draw_turns(
    rng: random.Random, source: TurnPlan, phrasing: Phrasing, *, held_out: bool = False, previous: str | None = None
) -> tuple[Turn, ...] | None:
    """A turn of a section, after the turn of its opening if it has one.

    `previous` is the number answered just before, for a follow-up. None if the drawn numbers never met the section's
    condition, or gave a result too long for an answer.
    """
    parts: list[str | Slot] = []
    expand(phrasing.node, rng, parts)
    wanted = set(source.needed)
    wanted.update(part.name for part in parts if isinstance(part, Slot))
    wanted.discard("prev")
    drawn = _draw(rng, source, wanted, held_out, previous)
    if drawn is None:
        return None
    turn = _answer(rng, source, parts, drawn)
    opening = source.section.opening
    if turn is None or opening is None:
        return None if turn is None else (turn,)
    before: list[str | Slot] = []
    expand(opening.node, rng, before)
    return Turn(add_noise(rng, _make_pieces(rng, before, drawn), "chat"), (), source.section.opened), turn


def _answer(rng: random.Random, source: TurnPlan, parts: list[str | Slot], drawn: DrawnValues) -> Turn | None:
    section = source.section
    user = add_noise(rng, _make_pieces(rng, parts, drawn), section.kind)
    shown = _list_shown(drawn)
    if section.call is None:
        return Turn(user, (), write_reply(section.reply, shown, {}, raw=True))
    calls = [_write_call(source, fields, drawn) for fields in (section.call, section.second) if fields]
    steps = tuple(Step(call, calculate(call)) for call in calls)
    failed = [step for step in steps if step.output.startswith("error: ")]
    if any(len(step.output) > LONGEST_RESULT for step in steps) and not failed and not source.raw_result:
        return None
    if bool(failed) != (section.kind == "error"):
        if not failed or len(steps) > 1:
            return None
        return Turn(user, steps, GENERIC_ERROR.replace("{e}", steps[0].output.removeprefix("error: ")))
    results = dict(zip(("r", "r2"), (step.output.removeprefix("error: ") for step in steps), strict=False))
    results["e"] = results["r"]
    fields = _use_singulars(_choose_reply(section, results["r"]), drawn, results)
    return Turn(user, steps, write_reply(fields, shown, results, raw=source.raw_result or bool(failed)))


def _list_shown(drawn: DrawnValues) -> dict[str, str]:
    shown = {name: number.shown for name, number in drawn.numbers.items()}
    shown |= drawn.texts | {name: expression.shown for name, expression in drawn.expressions.items()}
    for name, numbers in drawn.lists.items():
        shown |= numbers.write_shown(name)
    return shown | {name: said for name, said in drawn.letters_said.items() if strip_number(name) == "letter"}


def _choose_reply(section: Section, result: str) -> Fields:
    if section.below is not None and result.startswith("-"):
        return section.below
    return section.equal if section.equal is not None and result == "0" else section.reply


def _draw(
    rng: random.Random, source: TurnPlan, wanted: set[str], held_out: bool, previous: str | None
) -> DrawnValues | None:
    section = source.section
    drawn = DrawnValues(sayable=section.kind != "symbols" and rng.random() < 0.16)
    numeric: list[str] = []
    # Letters come after the texts in which they are looked for; sorted, so that a seed draws the same anywhere.
    for name in sorted(wanted, key=lambda name: (strip_number(name) in ("letter", "nth"), name)):
        base = strip_number(name)
        if name in section.lists:
            entries = section.lists[name]
            drawn.texts[name] = pick(rng, entries)
        elif base in TEXT_SLOTS:
            _draw_text(rng, name, base, source, drawn, held_out)
        else:
            numeric.append(name)
    if previous is not None:
        drawn.numbers["prev"] = Number(previous)
    return drawn if _draw_numbers(rng, section, numeric, drawn, held_out) else None


def _draw_text(rng: random.Random, name: str, base: str, source: TurnPlan, drawn: DrawnValues, held_out: bool) -> None:
    if base == "expr":
        drawn.expressions[name] = draw_expression(rng, held_out=held_out)
    elif base == "list":
        drawn.lists[name] = draw_list(rng, source.section.hints.get(name), held_out=held_out)
    elif base == "nth":
        _draw_ordinal(rng, name, drawn)
    elif base == "word":
        drawn.texts[name] = draw_word(rng, held_out=held_out, letters_only=source.letters_only)
    elif base == "phrase":
        drawn.texts[name] = draw_phrase(rng, held_out=held_out)
    elif base == "letter":
        text = next((drawn.texts[text] for text, letter in source.letter_counts if letter == name), "")
        letter = draw_letter(rng, text)
        drawn.texts[name] = letter
        form = rng.random()
        drawn.letters_said[name] = letter.upper() if form < 0.12 else letter.lower() if form < 0.3 else letter
    elif base == "name":
        taken = set(drawn.texts.values())
        choices = [pick(rng, list_names()) for _ in range(4)]
        drawn.texts[name] = next((choice for choice in choices if choice not in taken), choices[0])
    elif name not in drawn.texts:
        plural, singular = pick(rng, list_things())
        number = name[len(base) :]
        drawn.texts["things" + number], drawn.texts["thing" + number] = plural, singular


def _draw_ordinal(rng: random.Random, name: str, drawn: DrawnValues) -> None:
    """A position from 2 in the text of the turn, rarely one that it doesn't have; the first letter has its own call."""
    longest = min((len(text) for text in drawn.texts.values()), default=12)
    past_the_end = 3 if rng.random() < 0.04 else 0
    position = 2 + int(rng.random() * (max(longest - 1, 1) + past_the_end))
    drawn.texts[name] = str(position)
    drawn.letters_said[name] = write_ordinal(position, in_words=rng.random() < 0.6)


def _draw_numbers(rng: random.Random, section: Section, wanted: list[str], drawn: DrawnValues, held_out: bool) -> bool:
    where = section.where
    for attempt in range(_TRIES if where else 1):
        for name in wanted:
            hint = section.hints.get(name) or (_PERCENT if name == "p" else _ANY)
            drawn.numbers[name] = draw_number(rng, hint, held_out=held_out, sayable=drawn.sayable)
        if where is None:
            return True
        if attempt % 2:
            _make_multiples(rng, where, drawn, set(wanted), held_out)
        values: dict[str, Value] = {name: drawn.numbers[name].value for name in where.names}
        if where.holds(values):
            return True
    return False


def _make_multiples(rng: random.Random, where: Condition, drawn: DrawnValues, free: set[str], held_out: bool) -> None:
    for multiple, factor in where.multiples:
        if multiple in free and factor in drawn.numbers:
            times = 2 + int(rng.random() * (11 if rng.random() < 0.6 else 98))
            product = drawn.numbers[factor].value * times
            if isinstance(product, int) and number_fits(str(abs(product)), held_out):
                drawn.numbers[multiple] = Number(str(product))


def _write_call(source: TurnPlan, fields: Fields, drawn: DrawnValues) -> str:
    calls = {name: number.call for name, number in drawn.numbers.items()}
    calls |= drawn.texts | {name: expression.call for name, expression in drawn.expressions.items()}
    for name, numbers in drawn.lists.items():
        calls |= numbers.write_calls(name)
    call = write_call(fields, calls)
    for text, letter in source.letter_counts:
        plain = f'"{calls[text]}".count("{calls[letter]}")'
        call = call.replace(plain, count_call(calls[text], calls[letter]))
    return call


def _make_pieces(rng: random.Random, parts: list[str | Slot], drawn: DrawnValues) -> list[Piece]:
    pieces: list[Piece] = []
    for place, part in enumerate(parts):
        if isinstance(part, str):
            pieces.append(Piece(part))
            continue
        before = _get_edge(parts, place - 1, -1)
        after = _get_edge(parts, place + 1, 0)
        if part.name in drawn.numbers:
            text = write_number(rng, drawn.numbers[part.name], before=before, after=after, sayable=drawn.sayable)
            if not place and text[0].isalpha() and rng.random() < 0.4:
                text = text[0].upper() + text[1:]
            pieces.append(Piece(text, fixed=True))
        elif part.name in drawn.expressions:
            pieces.append(Piece(drawn.expressions[part.name].said, fixed=True))
        elif part.name in drawn.lists:
            pieces.append(Piece(drawn.lists[part.name].said, fixed=True))
        else:
            text = drawn.letters_said.get(part.name) or drawn.texts[part.name]
            last = place == len(parts) - 1 or (place == len(parts) - 2 and after in ("?", "."))
            said = _write_text(rng, part.base, text, last, before)
            if part.base == "things" and _counts_one(parts, place, drawn):
                said = drawn.texts["thing" + part.name[len(part.base) :]]
            bare = part.base in ("word", "phrase", "letter") and said[-1:].isalnum()
            pieces.append(Piece(said, fixed=True, open_ended=bare))
    return pieces


def _get_edge(parts: list[str | Slot], place: int, end: int) -> str:
    if not 0 <= place < len(parts):
        return ""
    part = parts[place]
    return part[end] if isinstance(part, str) else "{"


def _write_text(rng: random.Random, base: str, text: str, last: bool, before: str) -> str:
    if base == "name" and rng.random() < 0.1:
        return text.lower()
    already_quoted = before != "" and before in _QUOTES
    if already_quoted or base not in ("word", "phrase", "letter"):
        return text
    if base == "word":
        return quote(rng, text, chance=0.4)
    if base == "phrase":
        bare_is_clear = last and text[-1].isalnum()
        return quote(rng, text, chance=0.75 if bare_is_clear else 1.0)
    return quote(rng, text, chance=0.28)


def _counts_one(parts: list[str | Slot], place: int, drawn: DrawnValues) -> bool:
    if place < 2 or parts[place - 1] != " ":
        return False
    counted = parts[place - 2]
    return isinstance(counted, Slot) and counted.name in drawn.numbers and drawn.numbers[counted.name].call == "1"


def _use_singulars(reply: Fields, drawn: DrawnValues, results: Mapping[str, str]) -> Fields:
    """The reply with `{thing}` for `{things}` if the number before it is 1."""
    changed = list(reply)
    for place in range(2, len(reply)):
        counted, space, counted_thing = reply[place - 2 : place + 1]
        if space != " " or not isinstance(counted, Field) or not isinstance(counted_thing, Field):
            continue
        number = results.get(counted.name, "")
        if counted.name in drawn.numbers:
            number = drawn.numbers[counted.name].call
        if number == "1" and strip_number(counted_thing.name) == "things":
            changed[place] = Field("thing" + counted_thing.name[len("things") :], "")
    return tuple(changed)
