"""Chooses the tag of a frame around a text whose author isn't trusted, so that nothing in the text ends the frame."""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from ferrule._util.unicode_tables import DEFAULT_IGNORABLE_CODE_POINT

ANGLE = "[<‹«⟨⟪〈《❬❮❰˂ᐸ]/?"
"""What looks like the beginning of a tag, as a pattern."""


def choose_tag(name: str, text: str, after: str = "") -> str:
    """Return `name` if the text doesn't hold it, or else with the first number that it doesn't have there.

    Case, width, accents, white space, invisible characters and entities make no difference, and another script's
    characters count as look-alikes of any letter. A name that is an ordinary word counts only where it stands `after` a
    pattern, such as `ANGLE`.
    """
    plain = unescape(text)
    if not plain.isascii():
        plain = "".join(one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one))
    plain = re.sub(rf"[\s{DEFAULT_IGNORABLE_CODE_POINT}]+", "", plain).casefold().replace("_", "-")
    similar = "".join(rf"[{re.escape(letter)}\x80-\U0010ffff]" for letter in name).replace(
        r"[\-\x80-\U0010ffff]", r"[\-\x80-\U0010ffff]?"
    )
    found = re.finditer(rf"(?={after}({similar})(?:-(\d{{1,9}}))?)", plain)
    numbers = [int(one[2] or 1) for one in found if re.search("[a-z]", one[1])]
    return f"{name}-{max(numbers) + 1}" if numbers else name
