"""Where a text that is copied into an argument may begin and end, among the pieces of what was told.

People name things by whole words: an article isn't a part of a name, a name isn't cut in two, what stands in quotes
stands there whole, and the words with which a tool describes itself lead to a value (`tank T2`) and aren't one. The
rules are for English. They forbid 4 of the 385 texts in the calls of the embedded model's open list, and 3% of the
drawn ones that it is trained on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ferrule.dialects.signatures import SignatureParameter, list_parameters
from ferrule.embedded.named_numbers import NUMBER_WORDS
from ferrule.embedded.relevance import find_stems, list_descriptions
from ferrule.toolspec import ToolSpec

_SMALL_WORDS = (
    "a an the my our some any in of is are and or for to with at on from that its it's it i'd i i'm be was were can "
    "could will would do does did have has this these those by as but then than please you we they me us your what "
    "when where which who how tell show give need want like there"
)
"""Words with which the name of no thing begins or ends."""
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april may june july august september october november december"
_SMALL = frozenset(_SMALL_WORDS.split())
_WEEKDAYS = frozenset(_DAYS.split())
_CALENDAR = _WEEKDAYS | frozenset(_MONTHS.split())
_JOINING = frozenset("-./@_#:")
"""Signs that join what stands on both sides of them."""
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_PARTICLES = frozenset(
    ("am", "de", "del", "der", "des", "du", "la", "las", "le", "les", "los", "of", "upon", "van", "von")
)
"""Words in small letters within names: Frankfurt am Main."""
_SENTENCE_ENDS = ".!?\n:;"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)")
_WORD = re.compile(r"[a-z]+")
_FOR_DAYS = re.compile(
    r"day|date|time|when|start|begin|from|until|till|end|due|deadline|since|week|slot", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NameRules:
    """With which words no copy begins and ends, by their stems, and whether it may with a number, or a day of the
    week."""

    not_first: frozenset[str] = frozenset()
    not_last: frozenset[str] = frozenset()
    may_be_numbers: bool = True
    may_be_days: bool = True


def make_name_rules(spec: ToolSpec, request: str, told: set[str]) -> NameRules:
    """The rules for the copies in a tool's calls; `told` are the stems of all texts that may be copied.

    No copy has the tool's own words at its ends, or a number where each one of the request is needed as such.
    """
    parameters = list_parameters(spec)
    named = find_stems([spec.name, *(one.name for one in parameters)])
    needed = sum(one.is_required and one.takes_number for one in parameters)
    return NameRules(
        frozenset(find_stems(list_descriptions(spec)) & told),
        frozenset(named & told),
        may_be_numbers=not 0 < _count_numbers(request) <= needed,
    )


def _count_numbers(request: str) -> int:
    words = (word in NUMBER_WORDS for word in _WORD.findall(request.lower()))
    return len(_NUMBER.findall(request)) + sum(words)


def is_for_days(parameter: SignatureParameter) -> bool:
    """Whether a parameter may take a day of the week, by its name and description."""
    return _FOR_DAYS.search(f"{parameter.name} {parameter.schema.get('description', '')}") is not None


def find_boundaries(pieces: Sequence[str], rules: NameRules) -> Iterator[tuple[bool, bool]]:
    """Whether a copy may begin with each of these words, white spaces and signs, and whether it may end with it."""
    quoted = _find_quotations(pieces)
    has_small_letters = any(piece[0].islower() for piece in pieces)
    is_shouted = "".join(pieces).isupper()
    for place, piece in enumerate(pieces):
        first, last = quoted.get(place, (place, place))
        may_begin, may_end = place == first, place == last
        if _is_word(piece):
            before, after = _get(pieces, place - 1), _get(pieces, place + 1)
            stems = find_stems([piece])
            is_unlikely = _is_unlikely(piece.lower() if is_shouted else piece, rules)
            may_begin &= before in _QUOTES or not (is_unlikely or stems & rules.not_first)
            may_end &= not (is_unlikely or stems & rules.not_last)
            may_begin &= not (before in _JOINING and _is_word(_get(pieces, place - 2)))
            may_end &= not (after in _JOINING and _is_word(_get(pieces, place + 2)))
            if has_small_letters:
                may_begin &= not any(_is_one_name(pieces, place - back, place) for back in (2, 4))
                may_end &= not any(_is_one_name(pieces, place, place + ahead) for ahead in (2, 4))
                is_particle = piece in _PARTICLES and _is_one_name(pieces, place - 2, place + 2)
                may_begin, may_end = may_begin and not is_particle, may_end and not is_particle
        yield may_begin, may_end


def _is_one_name(pieces: Sequence[str], first: int, last: int) -> bool:
    """Whether two words are parts of one name: both have a capital, and not as a sentence's first. Between them there
    is a space, or a word such as `of` in spaces."""
    words = [_get(pieces, place) for place in range(first, last + 1, 2)]
    spaces = [_get(pieces, place) for place in range(first + 1, last, 2)]
    if any(space != " " for space in spaces) or not all(word in _PARTICLES for word in words[1:-1]):
        return False
    if not (words[0][:1].isupper() and words[-1][:1].isupper()):
        return False
    if {words[0].lower(), words[-1].lower()} & _CALENDAR:
        return False
    before = "".join(pieces[max(0, first - 2) : max(0, first)]).rstrip(" ")
    return bool(before) and before[-1] not in _SENTENCE_ENDS


def _find_quotations(pieces: Sequence[str]) -> dict[int, tuple[int, int]]:
    """The first and the last piece of the quotation in which each piece stands. An apostrophe in a word begins none."""
    found: dict[int, tuple[int, int]] = {}
    start, closing = 0, ""
    for place, piece in enumerate(pieces):
        if closing and piece == closing and not _is_word(_get(pieces, place + 1)):
            found |= dict.fromkeys(range(start, place), (start, place - 1))
            closing = ""
        elif not closing and piece in _QUOTES and not _is_word(_get(pieces, place - 1)):
            start, closing = place + 1, _QUOTES[piece]
    return found


def _get(pieces: Sequence[str], place: int) -> str:
    return pieces[place] if 0 <= place < len(pieces) else ""


def _is_word(piece: str) -> bool:
    return piece[:1].isalnum()


def _is_unlikely(word: str, rules: NameRules) -> bool:
    """Whether no copy begins or ends with a word, whatever is beside it."""
    is_number = word[0].isdigit() or word.lower() in NUMBER_WORDS
    return (
        word in _SMALL
        or (is_number and not rules.may_be_numbers)
        or (word.lower() in _WEEKDAYS and not rules.may_be_days)
    )
