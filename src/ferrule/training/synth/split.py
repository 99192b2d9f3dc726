"""Which words and numbers are held out of training: a tenth, by a hash of the text, whatever the seed."""

import zlib

TENTHS = 10
FEWEST_DIGITS = 4


def is_held_out(text: str) -> bool:
    """Whether a text belongs to the tenth that training never draws; casing makes no difference."""
    return zlib.crc32(text.lower().encode()) % TENTHS == 0


def number_fits(digits: str, held_out: bool) -> bool:
    """Whether a number may be drawn on this side of the split.

    Numbers of fewer than four digits stand on both sides: there are too few of them to keep any back, and a
    user's small numbers have to be in training.
    """
    digits = digits.replace(".", "")
    return len(digits) < FEWEST_DIGITS or is_held_out(digits) is held_out
