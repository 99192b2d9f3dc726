"""Scans an expression before Python's parser sees it: what it contains, its commas, and why it was refused.

Only numbers, short strings, operators, brackets, `len` and `.count` pass, so no hostile text reaches the parser.
"""

import re
from itertools import accumulate
from typing import Final

from ferrule.arithmetic.exact import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_LITERAL_DIGITS,
    MAX_OPERATIONS,
    CalculatorError,
)

_IN_DOUBLE: Final = r"""(?>(?:[^"\\\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]|\\[\\'"nt])*)"""
_IN_SINGLE: Final = _IN_DOUBLE.replace('[^"', "[^'")
STRING: Final = f"\"{_IN_DOUBLE}\"|'{_IN_SINGLE}'"
NUMBER: Final = (
    r"(?:[1-9][0-9]{0,2}(?>(?:,[0-9]{3})+)(?>(?:\.[0-9]++)?)"
    r"|(?:[0-9]++(?>(?:\.[0-9]*+)?)|\.[0-9]++)(?>(?:[eE][+-]?+[0-9]{1,5}+)?))(?![\w.,])"
)
SYMBOL: Final = r"[-+*/%()\[\]:\ ]|(?<![\w.])len(?=\ *\()|\.\ *count(?=\ *\()"

PLAIN: Final = re.compile(r"[0-9 .+\-*/%()]+")
ACCEPTED: Final = re.compile(rf"(?>(?:(?:{STRING})(?!\ *['\"])|{NUMBER}|{SYMBOL})+)")
GROUPED: Final = re.compile(rf"({STRING})|({NUMBER})")
# An unclosed string is matched too: looking for it again from every quote would take quadratic time.
STRINGS: Final = re.compile(f"\"{_IN_DOUBLE}(\")?|'{_IN_SINGLE}(')?")
PERCENT: Final = re.compile(r"[0-9.)] *% *(?:$|[*/%)\],:]|of\b)")
PERCENT_OR_REMAINDER: Final = re.compile(r"[0-9.]%(?: +[-+]|[-+] )")

LONG_NUMBER: Final = re.compile(rf"[0-9,.]{{{MAX_LITERAL_DIGITS + 1}}}")

CHARACTERS: Final = {
    "=": 'write only what is to be worked out, without "="',
    "^": 'write ** for a power, not "^"',
    "×": 'write * for times, not "×"',
    "·": 'write * for times, not "·"',
    "÷": 'write / for divided by, not "÷"',
    "−": 'write - for minus, not "−"',
    "–": 'write - for minus, not "–"',
    "<": "comparisons are not offered",
    ">": "comparisons are not offered",
    "$": 'write the number without "$"',
    "€": 'write the number without "€"',
    "£": 'write the number without "£"',
    "!": '"!" is not offered: write a factorial out as a product',
    "\n": "write the expression on one line",
    "\r": "write the expression on one line",
    "_": 'write 1000 or 1,000 for a thousand, not "_"',
}
PERCENT_REASON: Final = '"%" is the remainder of a division: for 20% of 50 write 50 * 20 / 100'
PERCENT_OR_REMAINDER_REASON: Final = (
    '"5% + 3" could be a percentage or a remainder: write 5 / 100 + 3 for the one, 5 % 3 for the other'
)
LINE_REASON: Final = "a string holds a character that is not offered, such as a line break"
ESCAPE_REASON: Final = "a backslash in a string comes before a backslash, a quote, n or t only"
WORDS_OFFERED: Final = 'only numbers, strings, len("banana") and "banana".count("a") are offered'
UNREADABLE: Final = "the expression can't be read"


def scan_expression(expression: str) -> str:
    """The expression for Python's parser, without commas that group digits. Raises CalculatorError."""
    if not isinstance(expression, str):
        raise CalculatorError("the expression must be text")
    length = len(expression)
    if length > MAX_LENGTH:
        raise CalculatorError(f"the expression has {length:,} characters; at most {MAX_LENGTH:,} are read")
    text = expression.strip(" \t\n\r")
    if "%" in text:
        _check_percent(_remove_strings(text))
    if PLAIN.fullmatch(text):
        if length > MAX_DEPTH:
            _check_size(text)
        return text
    if not ACCEPTED.fullmatch(text):
        raise CalculatorError(explain_refusal(text))
    if length > MAX_DEPTH:
        _check_size(_remove_strings(text))
    if "," in text:
        text = GROUPED.sub(_remove_commas, text)
    return text


def _remove_strings(text: str) -> str:
    return STRINGS.sub(lambda found: '""' if found.lastindex else '"', text)


def _remove_commas(found: re.Match[str]) -> str:
    return found[1] or found[2].replace(",", "")


def _check_percent(text: str) -> None:
    if PERCENT.search(text):
        raise CalculatorError(PERCENT_REASON)
    if PERCENT_OR_REMAINDER.search(text):
        raise CalculatorError(PERCENT_OR_REMAINDER_REASON)


def _check_size(text: str) -> None:
    operations = sum(text.count(sign) for sign in "+-*/%([")
    if operations > MAX_OPERATIONS:
        raise CalculatorError(
            f"the expression has {operations:,} operators and brackets; at most {MAX_OPERATIONS:,} are read"
        )
    if operations > MAX_DEPTH and (deepest := _measure_depth(text)) > MAX_DEPTH:
        raise CalculatorError(f"brackets are nested {deepest:,} deep; at most {MAX_DEPTH:,} are read")
    if len(text) > MAX_LITERAL_DIGITS and LONG_NUMBER.search(text):
        raise CalculatorError(f"a number has more than {MAX_LITERAL_DIGITS:,} digits as written")


def _measure_depth(text: str) -> int:
    steps = (1 if character in "([" else -1 for character in text if character in "([)]")
    return max(accumulate(steps), default=0)


def explain_refusal(text: str) -> str:
    """Why an expression can't be read, worded so that it says what to write instead."""
    rest = _remove_strings(text)
    return _explain_strings(rest) or _explain_words(rest) or _explain_layout(rest)


def _explain_strings(rest: str) -> str | None:
    unclosed = re.search(r'"(.?)', rest.replace('""', ""), re.DOTALL)
    if unclosed:
        if unclosed[1] == "\\":
            return ESCAPE_REASON
        return LINE_REASON if unclosed[1] else "a string has no closing quote"
    if re.search(r'"" *""', rest):
        return "two strings side by side: write one string"
    if re.search(r'[A-Za-z]""', rest):
        return "a letter before a string's quote is not offered"
    return None


def _explain_words(rest: str) -> str | None:
    if re.search(r"(?<![\w.])0[xXbBoO][0-9A-Fa-f]|[0-9][jJ]\b", rest):
        return "only decimal numbers are offered"
    if re.search(r"[0-9)] *[xX] *[0-9(.]", rest):
        return 'write * for times, not "x"'
    method = re.search(r"\. *([A-Za-z_]\w*)", rest)
    if method and method[1] != "count":
        return f'of the methods of a string only .count("a") is offered, not .{method[1][:20]}'
    for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*", rest):
        if word != "len":
            return f'"{word[:20]}" is not known: {WORDS_OFFERED}'
    if re.search(r"\b(?:len|count)\b(?! *\()", rest):
        return 'write len("banana") and "banana".count("a") with brackets'
    return None


def _explain_layout(rest: str) -> str:
    if "," in rest:
        return 'a comma only groups digits in threes, as in "1,234,567"'
    for character in rest:
        if character in CHARACTERS:
            return CHARACTERS[character]
    strange = re.search(r"[^0-9A-Za-z .+\-*/%()\[\]:\"']", rest)
    if strange and strange[0].isprintable():
        return f'"{strange[0]}" is not offered: write numbers and + - * / // % ** ( ) only'
    if strange:
        return "the expression holds a character that can't be printed"
    return _explain_order(rest)


def _explain_order(rest: str) -> str:
    if not rest:
        return "the expression is empty"
    if rest.count("(") != rest.count(")") or rest.count("[") != rest.count("]"):
        return "a bracket is missing its partner"
    if re.search(r"(?<![0-9.])0+[1-9]", rest):
        return "a number starts with 0: write 8 for 08"
    if re.search(r"[0-9.)\]\"] +[0-9.(\"]|\)[0-9.(]|[0-9.]\(", rest):
        return "two values side by side: write an operator such as * between them"
    if re.search(r"[-+*/%] *(?:$|\))", rest):
        return "an operator has nothing after it"
    if re.search(r"(?:\*\*|//|[-+*/%]) *[*/%]", rest):
        return "two operators side by side"
    if re.search(r"(?:^|\() *[*/%]", rest):
        return "an operator has nothing before it"
    if re.search(r"\.[0-9]*\.", rest):
        return "a number has two points"
    if ":" in rest and "[" not in rest:
        return '":" only cuts a string, as in "hello"[1:3]'
    return UNREADABLE
