"""The English words for numbers, each with its value: for what reads numbers in texts, and what writes them."""

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)

UNITS = {word: value for value, word in enumerate(_UNITS.split())}
"""From 0 to 19."""
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
"""From 20 to 90."""
ORDINALS = {word: value for value, word in enumerate(_ORDINALS.split(), 1)}
"""From the first to the twentieth."""
