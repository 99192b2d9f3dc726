"""Properties of characters that `unicodedata` lacks, each as the inside of a character class of `re`.

`python docs/write_unicode_tables.py` writes this file from the Unicode Character Database.
"""

from typing import Final

# fmt: off

DEFAULT_IGNORABLE_CODE_POINT: Final = (
    "\u00ad"
    "\u034f"
    "\u061c"
    "\u115f-\u1160"
    "\u17b4-\u17b5"
    "\u180b-\u180f"
    "\u200b-\u200f"
    "\u202a-\u202e"
    "\u2060-\u206f"
    "\u3164"
    "\ufe00-\ufe0f"
    "\ufeff"
    "\uffa0"
    "\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Characters that are not shown, assigned or not."""

PREPENDED_CONCATENATION_MARK: Final = (
    "\u0600-\u0605"
    "\u06dd"
    "\u070f"
    "\u0890-\u0891"
    "\u08e2"
    "\U000110bd"
    "\U000110cd"
)
"""Characters of the category Cf that are shown all the same."""
