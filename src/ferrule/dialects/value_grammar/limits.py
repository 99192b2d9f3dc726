"""Bounds of the values that a grammar allows where their schema sets none, and what a schema can be refused for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """How large a value may become. What a schema itself bounds (`maxLength`, `maxItems`, `maximum`) is as it says."""

    string_characters: int = 65_536
    """The characters of a string without `maxLength`, and of a match of a pattern without an end."""
    array_items: int = 256
    """The items of an array without `maxItems`."""
    object_keys: int = 64
    """The keys of an object without `properties` and `maxProperties`."""
    key_characters: int = 64
    """The characters of a key that the schema doesn't name."""
    value_depth: int = 4
    """How deeply arrays and objects are nested in a value of any kind, as `{}` allows."""
    recursion: int = 5
    """How often a value follows references that lead back to themselves; more often only if no value is less deep."""
    integer_digits: int = 15
    """The digits of an integer, and of a number before its point, without `minimum` or `maximum`: all integers of so
    many digits are exact as floats."""
    fraction_digits: int = 6
    """The digits of a number after its point."""


class Unsatisfiable(Exception):  # noqa: N818 - caught where another value can be written instead
    """No value fits a schema; the text says where, and why."""
