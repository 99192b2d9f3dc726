"""The formats of JSON Schema as regular expressions: of each, texts that every checker takes, though not all."""

from __future__ import annotations

from collections.abc import Mapping

_LEAP_DAY = r"[1-9]\d(?:0[48]|[2468][048]|[13579][26])-02-29"
_DATE = (
    r"(?:[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    rf"|02-(?:0[1-9]|1\d|2[0-8]))|{_LEAP_DAY})"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"{_CLOCK}:[0-5]\d(?:\.\d{{1,6}})?(?:Z|[+-]{_CLOCK})"
_DAYS = r"(?:\d{1,4}Y(?:\d{1,4}M(?:\d{1,4}D)?)?|\d{1,4}M(?:\d{1,4}D)?|\d{1,4}D)"
_HOURS = r"T(?:\d{1,4}H(?:\d{1,4}M(?:\d{1,4}S)?)?|\d{1,4}M(?:\d{1,4}S)?|\d{1,4}S)"
_LABEL = r"[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}"
_HOST = rf"(?:{_LABEL}\.){{1,3}}[A-Za-z]{{2,20}}"
_EMAIL = rf"[A-Za-z0-9_+-]{{1,20}}(?:\.[A-Za-z0-9_+-]{{1,20}}){{0,2}}@{_HOST}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_GROUP = r"[0-9A-Fa-f]{1,4}"
_GROUPS = rf"(?:{_GROUP}(?::{_GROUP}){{0,2}})?"
_IPV6 = rf"(?:(?:{_GROUP}:){{7}}{_GROUP}|{_GROUPS}::{_GROUPS})"
_HEX = "[0-9A-Fa-f]"
_IN_PATH = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%{_HEX}{{2}})"
_PATH = rf"(?:/{_IN_PATH}*)*"
_QUERY = rf"(?:\?(?:{_IN_PATH}|[/?])*)?(?:#(?:{_IN_PATH}|[/?])*)?"
_URI = (
    rf"(?:[a-z][a-z0-9+-]{{1,19}}://(?:{_HOST}|localhost|{_IPV4})(?::[1-9]\d{{0,3}})?{_PATH}{_QUERY}"
    rf"|(?:urn:[a-z][a-z0-9-]{{1,20}}|mailto|tel):{_IN_PATH}+)"
)
_REFERENCE = rf"(?:{_URI}|/(?:{_IN_PATH}+{_PATH})?{_QUERY})"
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"

FORMATS: Mapping[str, tuple[str, int]] = {
    "date": (_DATE, 10),
    "time": (_TIME, 21),
    "date-time": (f"{_DATE}T{_TIME}", 32),
    "duration": (rf"P(?:\d{{1,4}}W|{_DAYS}(?:{_HOURS})?|{_HOURS})", 64),
    "email": (_EMAIL, 254),
    "idn-email": (_EMAIL, 254),
    "hostname": (_HOST, 253),
    "idn-hostname": (_HOST, 253),
    "ipv4": (_IPV4, 15),
    "ipv6": (_IPV6, 39),
    "uuid": (rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}", 36),
    "uri": (_URI, 2_048),
    "uri-reference": (_REFERENCE, 2_048),
    "iri": (_URI, 2_048),
    "iri-reference": (_REFERENCE, 2_048),
    "json-pointer": (_POINTER, 1_024),
    "relative-json-pointer": (rf"(?:0|[1-9]\d{{0,3}})(?:#|{_POINTER})", 1_024),
}
"""The expression of each format, of a whole text, and the most characters that a text of it has."""
