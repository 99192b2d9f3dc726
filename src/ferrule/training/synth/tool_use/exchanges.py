"""What follows a request for a tool: follow-ups, answers to a question, and what a user says to a withheld call."""

import random
from collections.abc import Mapping, Sequence
from string import Formatter

from ferrule.embedded.missing import split_name
from ferrule.embedded.withholding import write_withheld_question
from ferrule.training.synth.example import Turn
from ferrule.training.synth.noise import Piece, add_noise
from ferrule.training.synth.tool_use.arguments import draw_value, say_value
from ferrule.training.synth.tool_use.offers import ForeignCall, OfferedTool, make_call
from ferrule.training.synth.tool_use.templates import TemplateParameter, Value
from ferrule.training.synth.wheel import pick

_YES = (
    "yes", "yep", "yeah", "yup", "sure", "go ahead", "please do", "ok", "okay", "correct", "right", "that's right",
    "exactly", "do it", "yes please", "y", "of course", "absolutely", "fine", "confirmed", "proceed", "please",
    "go for it", "sounds good", "I think so", "indeed", "affirmative", "do that", "yes, do that", "make it so",
    "that's the one", "yes, that one", "certainly", "you should", "yes you should", "alright", "ok go",
    "by all means", "that would be great", "definitely", "true", "sure thing", "why not", "yes, exactly",
    "that is what I meant",
)  # fmt: skip
_NO = (
    "no", "nope", "nah", "no thanks", "don't", "stop", "cancel", "never mind", "forget it", "please don't",
    "leave it", "rather not", "not now", "no, wrong", "skip it", "don't do that", "no way", "abort", "n",
    "no, thank you", "not that", "I'd rather you didn't", "you shouldn't", "better not", "no need", "drop it",
    "negative", "on second thought, no", "absolutely not", "no, leave it", "that's not what I want",
    "I changed my mind", "let it be", "not really", "no!",
)  # fmt: skip
_CORRECTIONS = (
    "no, {value}", "no, {value}", "{value}, not {old}", "I meant {value}", "no, the {name} is {value}",
    "make it {value}", "not {old}, {value}", "no: {value}", "almost, but {value}", "wrong {name}, it's {value}",
    "sorry, {value}", "change the {name} to {value}", "{value} instead", "no, with {value} as the {name}",
    "nearly: {value} instead of {old}", "with {value}, please", "no, I said {value}", "use {value} instead of {old}",
    "the {name} should be {value}",
)  # fmt: skip
_SAME_AGAIN = (
    "and {value}?", "what about {value}?", "and for {value}?", "same for {value}", "now {value}",
    "how about {value}?", "{value} too", "then {value}", "and with {value}?", "{value}?", "do {value} as well",
    "also {value}", "the same with {value}", "once more for {value}", "again, but {value}", "try {value}",
    "next: {value}",
)  # fmt: skip
_SAME_NAMED = (
    "and with {name} {value}?", "now with {value} as the {name}", "same, but {name} {value}",
    "again with {name} {value}", "what if the {name} is {value}?", "the same with {name} {value}",
    "change the {name} to {value} and do it again", "once more, {name}: {value}", "repeat it with {name} {value}",
    "and for {name} {value}?",
)  # fmt: skip
_FORMS: dict[tuple[bool, bool], tuple[str, ...]] = {
    (True, True): _CORRECTIONS,
    (True, False): tuple(form for form in _CORRECTIONS if "{name}" in form or "{old}" in form),
    (False, True): _SAME_AGAIN,
    (False, False): _SAME_NAMED,
}
"""What asks for another value: as a correction or for one more call, bare or with the parameter's name."""
_GIVEN = (
    "{value}", "{value}", "{value}", "{value} please", "it's {value}", "the {name} is {value}", "{name}: {value}",
    "{name} {value}", "make it {value}", "{value}, thanks", "oh, {value}", "sorry, {value}", "let's say {value}",
    "I meant {value}", "{value} of course", "take {value}", "{value} would be good", "hm, {value}",
)  # fmt: skip


def ask_withheld(user: str, call: str) -> Turn:
    """A request whose call was withheld: the framework's question stands in the model's place."""
    return Turn(user, (), write_withheld_question(call), is_trained=False)


def say_yes(rng: random.Random) -> str:
    """A user's yes."""
    return add_noise(rng, [Piece(pick(rng, _YES))], "chat")


def say_no(rng: random.Random) -> str:
    """A user's no."""
    return add_noise(rng, [Piece(pick(rng, _NO))], "chat")


def say_missing(
    rng: random.Random, tool: OfferedTool, missing: Sequence[TemplateParameter], held_out: bool
) -> tuple[str, dict[str, Value]]:
    """The turn that gives what was missing, and its values."""
    values = {p.name: draw_value(rng, p, held_out=held_out) for p in missing}
    if len(missing) == 1:
        return _write(rng, pick(rng, _GIVEN), tool, missing[0], values), values
    is_named = rng.random() < 0.35
    texts = []
    for parameter in missing:
        said = say_value(rng, parameter, values[parameter.name], is_clear=True).text
        name = split_name(tool.names[parameter.name])
        texts.append(f"{name} {said}" if is_named else said)
    joint = pick(rng, (", ", ", ", " and ", "; ", ", and "))
    return add_noise(rng, [Piece(joint.join(texts), fixed=True, open_ended=True)], "chat"), values


def change_argument(
    rng: random.Random, call: ForeignCall, held_out: bool, *, is_correction: bool
) -> tuple[str, ForeignCall] | None:
    """A turn that asks for the call with one other value, and that call; None if nothing can be changed plainly."""
    template = call.tool.template
    given = [p for p in template.parameters if p.name in call.arguments and p.is_drawable and not p.type.is_list]
    if not given:
        return None
    # A bare value must show whose it is: the only one that was given, or the only required one.
    required = [parameter for parameter in given if parameter.required]
    alone = given[0] if len(given) == 1 else required[0] if len(required) == 1 and required[0].source else None
    is_bare = alone is not None and (is_correction or rng.random() < 0.75)
    parameter = alone if alone is not None and is_bare else pick(rng, given)
    forms = _FORMS[is_correction, is_bare]
    old = call.arguments[parameter.name]
    value = draw_value(rng, parameter, held_out=held_out, unlike=old)
    if value == old:
        return None
    values = {**call.arguments, parameter.name: value}
    return _write(rng, pick(rng, forms), call.tool, parameter, values, old), make_call(call.tool, values)


def _write(
    rng: random.Random,
    form: str,
    tool: OfferedTool,
    parameter: TemplateParameter,
    values: Mapping[str, Value],
    old: Value = None,
) -> str:
    fields = {"name": (split_name(tool.names[parameter.name]), False)}
    said = say_value(rng, parameter, values[parameter.name], is_clear=not form.endswith("{value}"))
    fields["value"] = (said.text, said.is_sentence)
    if old is not None:
        fields["old"] = (say_value(rng, parameter, old, is_clear=True).text, False)
    pieces: list[Piece] = []
    for literal, name, _, _ in Formatter().parse(form):
        if literal:
            pieces.append(Piece(literal))
        if name:
            text, is_last = fields[name]
            pieces.append(Piece(text, fixed=True, open_ended=True, is_last=is_last))
    return add_noise(rng, pieces, "chat")
