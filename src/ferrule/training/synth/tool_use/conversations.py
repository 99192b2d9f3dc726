"""Draws conversations in which tools are offered: calls, several at once, questions back, follow-ups, what none can do.

An offer is long, so most conversations ask several things of the same tools.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ferrule.embedded.missing import write_question
from ferrule.training.synth.example import Example, Step, Turn
from ferrule.training.synth.tool_use.exchanges import ask_withheld, change_argument, say_missing, say_no, say_yes
from ferrule.training.synth.tool_use.inventing import ToolInventor
from ferrule.training.synth.tool_use.offer_drawing import Offer, OfferDrawer, find_stems
from ferrule.training.synth.tool_use.offers import ForeignCall, OfferedTool, make_call
from ferrule.training.synth.tool_use.requests import draw_request, join_requests, repeat_for_another
from ferrule.training.synth.tool_use.results import draw_result
from ferrule.training.synth.tool_use.templates import ToolTemplate
from ferrule.training.synth.tool_use.tool_replies import (
    DECLINED,
    NOT_DONE,
    label_calls,
    name_tool,
    write_joint_reply,
    write_tool_reply,
)
from ferrule.training.synth.tool_use.withheld_calculations import withhold_calculation
from ferrule.training.synth.wheel import Wheel, pick

PlainKind = Literal["calculator", "chat", "refusal"]


class DrawPlainTurn(Protocol):
    """Draws a turn without a foreign tool: a calculation, small talk, or what the calculator can't do.

    `tools` are the names that the reply of small talk may say.
    """

    def __call__(self, rng: random.Random, kind: PlainKind, held_out: bool, tools: Sequence[str] = ...) -> Turn: ...


_TRIES = 30
_ONE_TURN_SHARE = 0.25
_OFFER_SHARE = 0.75
_LONGEST_CALCULATION = 160
_WITHHELD_CALCULATION_SHARE = 0.5
# A tool that could answer anything: no question is beyond it.
_OMNISCIENT = frozenset(
    find_stems("web search internet wiki encyclopedia knowledge news dictionary translate translation")
)
_KINDS = Wheel(
    [
        ("call", 56),
        ("two", 9),
        ("follow", 9),
        ("missing", 9),
        ("decline", 14),
        ("calculator", 12),
        ("chat", 3),
        ("withheld", 5),
    ]
)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the turns of a conversation have in common."""

    rng: random.Random
    offer: Offer
    stems: set[str]
    held_out: bool


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Some turns, and the last call of the last of them if another may follow up on it."""

    turns: tuple[Turn, ...]
    call: ForeignCall | None = None


class ToolConversations:
    """Draws conversations with the tools of templates, and with invented ones."""

    def __init__(self, templates: Iterable[ToolTemplate], draw_plain_turn: DrawPlainTurn) -> None:
        self._offers = OfferDrawer(templates, ToolInventor())
        self._draw_plain_turn = draw_plain_turn

    def draw(self, rng: random.Random, *, held_out: bool, one_turn: bool, most_characters: int) -> Example:
        """A conversation of about at most this length.

        Raises ValueError if none is that short.
        """
        longest_offer = most_characters * _OFFER_SHARE
        for _ in range(_TRIES):
            offer = self._offers.draw_offer(rng, longest_offer)
            if offer.characters > longest_offer:
                continue
            scene = _Scene(rng, offer, offer.find_stems(), held_out)
            wanted = 1 if one_turn or rng.random() < _ONE_TURN_SHARE else 2 + int(rng.random() * 4)
            example = self._draw_turns(scene, wanted, most_characters)
            if example is not None:
                return example
        raise ValueError(f"no conversation with tools of at most {most_characters} characters can be drawn")

    def _draw_turns(self, scene: _Scene, wanted: int, most_characters: int) -> Example | None:
        example = Example("tools", "", (), scene.offer.to_json(), scene.offer.characters)
        last: ForeignCall | None = None
        kinds: list[str] = []
        while len(example.turns) < wanted:
            kind = _KINDS.draw(scene.rng)
            exchange = self._draw_exchange(scene, kind, last, wanted - len(example.turns))
            if exchange is None:
                continue
            kinds.append(kind)
            longer = replace(example, section="+".join(kinds), turns=(*example.turns, *exchange.turns))
            if longer.characters > most_characters:
                break
            example, last = longer, exchange.call
        return example if example.turns else None

    def _draw_exchange(self, scene: _Scene, kind: str, last: ForeignCall | None, room: int) -> _Exchange | None:
        """Turns of a kind; None where the kind doesn't fit here."""
        if kind == "follow":
            return _follow(scene, last) if last is not None else None
        if kind == "missing":
            return _ask_for_missing(scene, is_answered=room > 1)
        if kind == "withheld":
            return self._withhold(scene) if room > 1 else None
        if kind == "call":
            return _call(scene)
        if kind == "two":
            return self._call_two(scene)
        if kind == "chat":
            names = [name_tool(tool) for tool in scene.offer.tools]
            return _Exchange((self._draw_plain_turn(scene.rng, "chat", scene.held_out, names),))
        if kind == "calculator":
            turn = self._draw_calculation(scene) if scene.offer.has_calculator else None
            return None if turn is None else _Exchange((turn,))
        return self._decline(scene)

    def _draw_calculation(self, scene: _Scene) -> Turn | None:
        turn = self._draw_plain_turn(scene.rng, "calculator", scene.held_out)
        return turn if turn.steps and len(turn.user) < _LONGEST_CALCULATION else None

    def _withhold(self, scene: _Scene) -> _Exchange | None:
        """A call that was withheld: of a foreign tool, or of the calculator where it is offered."""
        if not scene.offer.has_calculator or scene.rng.random() >= _WITHHELD_CALCULATION_SHARE:
            return _withhold(scene)
        turn = self._draw_calculation(scene)
        turns = withhold_calculation(scene.rng, turn, scene.held_out) if turn is not None else None
        return None if turns is None else _Exchange(turns)

    def _decline(self, scene: _Scene) -> _Exchange | None:
        """A request that no tool fits: for a tool that isn't offered, for a fact, or for a calculation."""
        rng, form = scene.rng, scene.rng.random()
        if form < 0.35:
            draw = self._offers.draw_near_miss if form < 0.15 else self._offers.draw_sibling
            return _decline_another(scene, draw(rng, scene.offer))
        if form < 0.7 or scene.stems & _OMNISCIENT:
            other = self._offers.draw_tool(rng)
            request = draw_request(rng, other, held_out=scene.held_out)
            words = find_stems(f"{other.template.domain} {' '.join(other.template.names)}".replace("_", " "))
            if request is None or words & scene.stems:
                return None
            user = request.write(rng)
        elif form < 0.9 or scene.offer.has_calculator:
            user = self._draw_plain_turn(rng, "refusal", scene.held_out).user
        else:
            user = self._draw_plain_turn(rng, "calculator", scene.held_out).user
        if find_stems(user) & scene.stems or len(user) > _LONGEST_CALCULATION:
            return None
        return _Exchange((Turn(user, (), DECLINED),))

    def _call_two(self, scene: _Scene) -> _Exchange | None:
        """Two or three things at once: of one tool, of several, or one of the calculator."""
        rng, tools = scene.rng, scene.offer.foreign
        if scene.offer.has_calculator and rng.random() < 0.3:
            return self._call_and_calculate(scene)
        first = draw_request(rng, pick(rng, tools), held_out=scene.held_out, is_clear=True)
        if first is None:
            return None
        if rng.random() < 0.45 or len(tools) == 1:
            repeated = repeat_for_another(rng, first, scene.held_out)
            if repeated is not None:
                return _run(scene, *repeated)
        requests = [first]
        for _ in range(1 if rng.random() < 0.85 else 2):
            other = draw_request(rng, pick(rng, tools), held_out=scene.held_out, is_clear=True)
            if other is not None:
                requests.append(other)
        calls = [make_call(request.tool, request.values) for request in requests]
        if len({call.text for call in calls}) < len(calls):
            return None
        return _run(scene, join_requests(rng, [request.write_plainly() for request in requests]), calls)

    def _call_and_calculate(self, scene: _Scene) -> _Exchange | None:
        """A call of a foreign tool and a calculation, in either order."""
        rng = scene.rng
        calculation = self._draw_calculation(scene)
        request = draw_request(rng, pick(rng, scene.offer.foreign), held_out=scene.held_out, is_clear=True)
        if calculation is None or request is None or len(calculation.steps) != 1:
            return None
        call = make_call(request.tool, request.values)
        both = [
            (request.write_plainly(), call, _make_step(scene, call)),
            (calculation.user, None, calculation.steps[0]),
        ]
        if rng.random() >= 0.5:
            both.reverse()
        said, calls, steps = zip(*both, strict=True)
        return _Exchange((_answer(join_requests(rng, said), calls, steps),))


def _make_step(scene: _Scene, call: ForeignCall) -> Step:
    return Step(call.text, draw_result(scene.rng, call, held_out=scene.held_out))


def _run(scene: _Scene, user: str, calls: list[ForeignCall]) -> _Exchange:
    """The exchange in which these calls are made; one can be followed up if it is the only one."""
    steps = [_make_step(scene, call) for call in calls]
    return _Exchange((_answer(user, calls, steps),), calls[0] if len(calls) == 1 else None)


def _answer(user: str, calls: Sequence[ForeignCall | None], steps: Sequence[Step]) -> Turn:
    results = [step.output for step in steps]
    reply = write_tool_reply(results[0]) if len(steps) == 1 else write_joint_reply(label_calls(calls), results)
    return Turn(user, tuple(steps), reply)


def _call(scene: _Scene) -> _Exchange | None:
    request = draw_request(scene.rng, pick(scene.rng, scene.offer.foreign), held_out=scene.held_out)
    if request is None:
        return None
    return _run(scene, request.write(scene.rng), [make_call(request.tool, request.values)])


def _decline_another(scene: _Scene, other: OfferedTool | None) -> _Exchange | None:
    """A request for what the tools are about, but not for what they do: to delete what they only find."""
    request = draw_request(scene.rng, other, held_out=scene.held_out) if other is not None else None
    return None if request is None else _Exchange((Turn(request.write(scene.rng), (), DECLINED),))


def _follow(scene: _Scene, last: ForeignCall) -> _Exchange | None:
    changed = change_argument(scene.rng, last, scene.held_out, is_correction=False)
    return None if changed is None else _run(scene, changed[0], [changed[1]])


def _ask_for_missing(scene: _Scene, *, is_answered: bool) -> _Exchange | None:
    """A request that lacks an argument, the question for it, and, if answered, the turn that gives it."""
    rng = scene.rng
    request = draw_request(rng, pick(rng, scene.offer.foreign), held_out=scene.held_out, lacks=True)
    if request is None:
        return None
    tool = request.tool
    question = write_question([tool.names[parameter.name] for parameter in request.missing])
    asked = Turn(request.write(rng), (), question)
    if not is_answered:
        return _Exchange((asked,))
    said, values = say_missing(rng, tool, request.missing, scene.held_out)
    given = _run(scene, said, [make_call(tool, {**request.values, **values})])
    return _Exchange((asked, *given.turns), given.call)


def _withhold(scene: _Scene) -> _Exchange | None:
    """A call of a foreign tool that was withheld: the user says yes, no, or what is right."""
    rng = scene.rng
    request = draw_request(rng, pick(rng, scene.offer.foreign), held_out=scene.held_out)
    if request is None:
        return None
    call = make_call(request.tool, request.values)
    asked, form = ask_withheld(request.write(rng), call.text), rng.random()
    if form < 0.45:
        return _Exchange((asked, *_run(scene, say_yes(rng), [call]).turns), call)
    if form < 0.65:
        return _Exchange((asked, Turn(say_no(rng), (), NOT_DONE)))
    changed = change_argument(rng, call, scene.held_out, is_correction=True)
    if changed is None:
        return None
    return _Exchange((asked, *_run(scene, changed[0], [changed[1]]).turns), changed[1])
