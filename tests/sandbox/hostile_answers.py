"""Answers that a hostile child could write: each is about a megabyte that aims at one cost of reading it.

Python's hashes of numbers repeat modulo 2**61 - 1, those of tuples can be computed backwards, and places in a table
follow from the lowest bits: so keys can be chosen that meet.
"""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

MEGABYTE: Final = 1 << 20
MODULUS: Final = 2**61 - 1

Frame = tuple[bytes, bytes]


def repeated(item: str) -> Frame:
    """A list of one tree, a megabyte long."""
    return f'{{"value":[{",".join([item] * (MEGABYTE // (len(item) + 1)))}]}}'.encode(), b""


def of(value: Any, data: bytes = b"") -> Frame:
    """An answer with a value."""
    return json.dumps({"value": value}, separators=(",", ":")).encode(), data


def tagged(tag: str, members: Any) -> dict[str, Any]:
    return {"$": tag, "of": members}


def dictionary(keys: list[Any]) -> dict[str, Any]:
    return {"$": "dict", "keys": keys, "of": [0] * len(keys)}


def integer(number: int) -> Any:
    return number if abs(number) < 2**62 else {"$": "int", "hex": hex(number)}


def chain(count: int) -> list[int]:
    """Whole numbers of which the second half walks through the places of the first, in a table of its final size."""
    size = 1 << (count * 3 // 2).bit_length()
    walk, place = [], 0
    for _ in range(count // 2):
        walk.append(place)
        place = (5 * place + 1) % size
    # From where `perturb` has become 0 each goes the same way; the high bits choose where that begins.
    late: list[int] = []
    first = set(walk[: count // 8])
    number = size
    while len(late) < count // 2:
        at, perturb = number % size, number
        while perturb:
            perturb >>= 5
            at = (at * 5 + perturb + 1) % size
        if at in first:
            late.append(number)
        number += 1
    return walk + late


def tuples_of_one_hash(count: int, length: int) -> list[tuple[int, ...]]:
    """Tuples that differ at their ends only, and have one hash: each ends in a multiple of the modulus."""
    return [(*(1,) * (length - 1), place * MODULUS) for place in range(1, count + 1)]


def _exact_half() -> str:
    digits = str(5**1075)
    return f"{digits[0]}.{digits[1:]}e{len(digits) - 1 - 1075}"


BIG: Final = "9" * 4300
ANSWERS: Final[dict[str, Callable[[], Frame]]] = {
    "empty lists": lambda: repeated("[]"),
    "empty objects": lambda: repeated("{}"),
    "digits": lambda: repeated("1"),
    "short floats": lambda: repeated("1e5"),
    "floats between two": lambda: repeated(_exact_half()),
    "empty text": lambda: repeated('""'),
    "objects of one": lambda: repeated('{"":0}'),
    "text of separators": lambda: repeated(json.dumps("," * 200)),
    "long integers": lambda: repeated(BIG),
    "one object": lambda: of({f"{place:x}": 0 for place in range(MEGABYTE // 9)}),
    "one long integer": lambda: of({"$": "int", "hex": "0x" + "f" * MEGABYTE}),
    "one endless number": lambda: (b'{"value":' + b"7" * MEGABYTE + b"}", b""),
    "one deep list": lambda: (b'{"value":' + b"[" * (MEGABYTE // 2) + b"]" * (MEGABYTE // 2) + b"}", b""),
    "one deep tuple": lambda: (
        b'{"value":' + b'{"$":"tuple","of":[' * 50_000 + b"]}" * 50_000 + b"}",
        b"",
    ),
    **{
        f"empty {tag}": lambda tag=tag: repeated(f'{{"$":"{tag}","of":[],"keys":[]}}')
        for tag in ("tuple", "set", "frozenset", "dict")
    },
    "integers": lambda: repeated('{"$":"int","hex":"1"}'),
    "floats": lambda: repeated('{"$":"float","is":"nan"}'),
    "dates": lambda: repeated('{"$":"date","is":"2020-01-01"}'),
    "moments": lambda: repeated('{"$":"datetime","is":"2020-01-01T00:00:00+01:23"}'),
    "times": lambda: repeated('{"$":"time","is":"00:00:00"}'),
    "spans": lambda: repeated('{"$":"timedelta","of":[1,2,3]}'),
    "complex": lambda: repeated('{"$":"complex","of":[1,2]}'),
    "short decimals": lambda: repeated('{"$":"decimal","is":"1"}'),
    "long decimals": lambda: repeated(f'{{"$":"decimal","is":"{"7" * 9_990}"}}'),
    "large decimals": lambda: repeated('{"$":"decimal","is":"1E+999999999999999999"}'),
    "short fractions": lambda: repeated('{"$":"fraction","of":[1,2]}'),
    "long fractions": lambda: repeated(
        json.dumps(tagged("fraction", [{"$": "int", "hex": hex(3**5_000)}, {"$": "int", "hex": hex(2**8_191 + 1)}]))
    ),
    "one long fraction": lambda: of(tagged("fraction", [integer(7**400_000), integer(10**400_000 + 1)])),
    "a fraction of a text": lambda: of(tagged("fraction", ["1e999999999"])),
    "a fraction of a decimal": lambda: of(tagged("fraction", [{"$": "decimal", "is": "1E+999999999"}])),
    "opaque values": lambda: repeated('{"$":"opaque","type":"","text":"","reason":""}'),
    "empty texts": lambda: repeated('{"$":"text","n":0}'),
    "half pairs in the tree": lambda: (b'{"value":"' + b"\xed\xa0\x80" * (MEGABYTE // 3) + b'"}', b""),
    "half pairs in a text": lambda: of({"$": "text", "n": MEGABYTE}, b"\xed\xa0\x80" * (MEGABYTE // 3) + b"a"),
    "half pairs, escaped": lambda: of(
        {"$": "escaped", "n": MEGABYTE // 6 * 6 + 2}, b'"' + b"\\ud800" * (MEGABYTE // 6) + b'"'
    ),
    "lists, escaped": lambda: of({"$": "escaped", "n": MEGABYTE // 3 * 3 + 3}, b"[" + b"[]," * (MEGABYTE // 3) + b"0]"),
    "another encoding": lambda: (
        ('{"value":"' + "\ud800" * (MEGABYTE // 4) + '"}').encode("utf-32", "surrogatepass"),
        b"",
    ),
    "empty arrays": lambda: repeated('{"$":"array","dtype":"|b1","shape":[0],"n":0}'),
    "arrays of many sides": lambda: repeated(f'{{"$":"array","dtype":"|b1","shape":[{",".join(["0"] * 32)}],"n":0}}'),
    "one wide array": lambda: of({"$": "array", "dtype": "<f8", "shape": [2**30, 0], "n": 0}),
    "one array": lambda: of(
        {"$": "array", "dtype": "<U1", "shape": [MEGABYTE // 4], "n": MEGABYTE}, b"a\0\0\0" * (MEGABYTE // 4)
    ),
    "images": lambda: (repeated('{"$":"image","n":8}')[0], b"\x89PNG\r\n\x1a\n" * (MEGABYTE // 20)),
    "tables": lambda: repeated('{"$":"table","names":[],"of":[],"index":[],"total":0}'),
    "a table of columns": lambda: of(
        {"$": "table", "names": [0] * 100_000, "of": [[]] * 100_000, "index": [], "total": 0}
    ),
    "a set of one hash": lambda: of(tagged("set", [integer(place * MODULUS) for place in range(1, 25_000)])),
    "a set of a decimal and a long integer": lambda: of(
        tagged("set", [{"$": "decimal", "is": "5"}, integer(5 + MODULUS * 16**240_000)])
    ),
    "a dictionary of long integers": lambda: of(
        dictionary([integer(place * MODULUS * 16**2000) for place in range(1, 400)])
    ),
    "a set of long decimals": lambda: of(
        tagged("set", [{"$": "decimal", "is": f"{place * MODULUS}.{'0' * 9900}"} for place in range(1, 100)])
    ),
    "a set of large decimals": lambda: of(
        tagged("set", [{"$": "decimal", "is": f"{place}E+{9 * 10**17}"} for place in range(20_000)])
    ),
    "a set of fractions": lambda: of(
        tagged("set", [tagged("fraction", [place * 2**61 + 1, 2**61]) for place in range(8_000)])
    ),
    "a set of tuples": lambda: of(
        tagged("set", [tagged("tuple", list(map(integer, one))) for one in tuples_of_one_hash(1000, 60)])
    ),
    "a set of short tuples": lambda: of(
        tagged("set", [tagged("tuple", list(map(integer, one))) for one in tuples_of_one_hash(9_000, 2)])
    ),
    "a set of sets": lambda: of(
        tagged("set", [tagged("frozenset", [1, 2, 3, integer(place * MODULUS)]) for place in range(1, 9_000)])
    ),
    "a set of complex numbers": lambda: of(
        tagged("set", [tagged("complex", [-1000003.0 * place, 1.0 * place]) for place in range(10_000)])
    ),
    "a set of spans": lambda: of(tagged("set", [tagged("timedelta", [place, 0, 0]) for place in range(14_000)])),
    "a dictionary of one place": lambda: of(dictionary([one << 16 for one in range(1, 49_000)])),
    "chains of integers": lambda: of([dictionary(chain(2_000))] * 24),
    "a set of one place": lambda: of(tagged("set", [one << 16 for one in range(1, 90_000)])),
    "a short chain": lambda: of(dictionary(chain(6_000))),
    # Those that are just few enough to be hashed.
    "a small set of decimals": lambda: of(
        tagged("set", [{"$": "decimal", "is": f"{place * MODULUS}"} for place in range(1, 204)])
    ),
    "a small set of decimals and integers": lambda: of(
        tagged(
            "set",
            [{"$": "decimal", "is": f"{place * MODULUS}.0"} for place in range(1, 105)]
            + [integer(place * MODULUS << 61 * 15) for place in range(1, 200)],
        )
    ),
    "a small set of fractions": lambda: of(
        tagged("set", [tagged("fraction", [place * 4 + 1, 2**61]) for place in range(111)])
    ),
    "a small set of tuples": lambda: of(
        tagged("set", [tagged("tuple", list(map(integer, one))) for one in tuples_of_one_hash(550, 60)])
    ),
    "a small set of short tuples": lambda: of(
        tagged("set", [tagged("tuple", list(map(integer, one))) for one in tuples_of_one_hash(760, 2)])
    ),
    "a small set of sets": lambda: of(
        tagged("set", [tagged("frozenset", [1, 2, 3, integer(place * MODULUS)]) for place in range(1, 280)])
    ),
    "a small set of complex numbers": lambda: of(
        tagged("set", [tagged("complex", [-1000003.0 * place, 1.0 * place]) for place in range(900)])
    ),
    "a small set of long integers": lambda: of(
        tagged("set", [integer(place * MODULUS << 61 * 15) for place in range(1, 1110)])
    ),
    "dates and a chain": lambda: of([*[{"$": "date", "is": "2020-01-01"}] * 20_000, tagged("set", chain(4_900))]),
    "keys of one hash, all kinds": lambda: of(
        [tagged("set", [0.0, *(math.ldexp(1.0, 61 * place) for place in range(16))])] * 3_000
    ),
}
"""By name; made when they are asked for."""


def answers() -> Iterator[tuple[str, Frame]]:
    """All of them."""
    for name, make in ANSWERS.items():
        yield name, make()
