"""Which hosts may be reached: rules by name, and the addresses that a name must not resolve to."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.errors import SandboxInputError

__all__ = ["HostRules", "is_public", "normalize_host"]

_PORTS = frozenset({80, 443})
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME_LENGTH = 254  # characters of a name, including a final dot
# IPv6 ranges that embed an IPv4 address and reach its host: IPv4-mapped, and NAT64's well-known prefix.
_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # precedes the IPv4 address of such a tunnel

# IANA's special-purpose registries, in full, since `is_global` differs between Python versions, and Azure's channel to
# its virtual machines, which uses a public address.
_NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
            *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",
        ),
    )
)
# The only IPv6 block assigned to internet hosts, and its exceptions: protocols (Teredo, ORCHID, benchmarks, relays),
# documentation, 6to4, the former test network, AS112's DNS sink.
_INTERNET = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20"),
    )
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class _Rule:
    """One entry of the list."""

    host: str
    """A name, an address, or the part of `*.example.org` after the `*`."""
    is_suffix: bool
    ports: frozenset[int]


class HostRules:
    """Rules: `example.org` (only that name), `*.example.org` (every name below it, not itself), or an address; each
    for ports 80 and 443, or for a given one as in `example.org:8443`.

    An address, even a private one, can be reached only if the user lists it. A name can be reached only at public
    addresses.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        """Raises `SandboxInputError` for an invalid rule."""
        self._rules = tuple(map(_parse_rule, rules))

    @property
    def allow_nothing(self) -> bool:
        """Whether there is no rule."""
        return not self._rules

    def allow(self, host: str, port: int) -> bool:
        """Whether a host, normalized by `normalize_host`, may be reached at a port."""
        return any(
            port in rule.ports and (host.endswith(rule.host) if rule.is_suffix else host == rule.host)
            for rule in self._rules
        )


def _parse_rule(rule: str) -> _Rule:
    text, ports = rule.strip(), _PORTS
    named = re.fullmatch(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d{1,5})", text)
    if named and 0 < int(named["port"]) < 65536:
        text, ports = named["host"], frozenset({int(named["port"])})
    is_suffix = text.startswith("*.")
    host = normalize_host(text[2:] if is_suffix else text)
    if host is None or (is_suffix and (parse_address(host) or "." not in host)):
        raise SandboxInputError(
            f"{rule!r} isn't a rule for hosts: write example.org, *.example.org, 192.0.2.1 or one of them with :PORT"
        )
    return _Rule(f".{host}" if is_suffix else host, is_suffix, ports)


def normalize_host(text: str) -> str | None:
    """Return a name in lower-case ASCII without a final dot, an address in standard form, or None for neither.

    Every notation of an address (`127.1`, `0x7f000001`, `[::ffff:7f00:1]`) yields that address, so that none of them
    passes as a name.
    """
    text = text.strip()
    if len(text) > _MAX_NAME_LENGTH:
        return None
    text = text.removesuffix(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    address = parse_address(text)
    if address is not None:
        return str(address)
    try:
        name = text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    # Resolvers treat a name whose last label is a number as an address, or as an error.
    return (
        name if _NAME.fullmatch(name) and len(name) < 254 and not _NUMBER.fullmatch(name.rpartition(".")[2]) else None
    )


def parse_address(text: str) -> Address | None:
    """Parse an address in any notation that a resolver accepts; None if it isn't one."""
    try:
        return _unwrap_ipv4(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(socket.inet_aton(text)) if text.isascii() and " " not in text else None
    except (OSError, ValueError):
        return None


def is_public(address: Address) -> bool:
    """Whether an address is on the internet: not this machine, its network, link-local or cloud metadata.

    An embedded IPv4 address is checked as such, except behind a network's own NAT64 prefix, which can't be told from
    its other addresses.
    """
    address = _unwrap_ipv4(address)
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    if address not in _INTERNET or any(address in network for network in _NOT_PUBLIC_V6):
        return False
    number = int(address)
    is_tunnel = (number >> 32) & 0xFFFFFFFF in _ISATAP
    return not is_tunnel or is_public(ipaddress.IPv4Address(number & 0xFFFFFFFF))


def _unwrap_ipv4(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 one, else the address itself."""
    if isinstance(address, ipaddress.IPv6Address) and any(address in carrier for carrier in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
