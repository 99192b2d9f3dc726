"""Which hosts may be reached: rules by name, and the addresses that a name must not lead to."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.errors import SandboxInputError

__all__ = ["HostRules", "is_public", "normal_host"]

_PORTS = frozenset({80, 443})
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Azure's channel to its virtual machines: a public address that is none.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of the list."""

    host: str
    """A name, or what follows the `*` of `*.example.org`, or an address."""
    is_suffix: bool
    ports: frozenset[int]


class HostRules:
    """`example.org` (that name alone), `*.example.org` (every name below it, not itself), an address; each for the
    ports 80 and 443, or for the one that is named as in `example.org:8443`.

    An address, also a private one, is reached only where it is listed as such: the user's own word. A name is
    reached only at public addresses.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        """Raises `SandboxInputError` for a rule that can't be read."""
        self._rules = tuple(map(_read, rules))

    def allow(self, host: str, port: int) -> bool:
        """Whether a host, as `normal_host` gives it, may be reached at a port."""
        return any(
            port in rule.ports and (host.endswith(rule.host) if rule.is_suffix else host == rule.host)
            for rule in self._rules
        )


def _read(rule: str) -> _Rule:
    text, ports = rule.strip(), _PORTS
    named = re.fullmatch(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d{1,5})", text)
    if named and 0 < int(named["port"]) < 65536:
        text, ports = named["host"], frozenset({int(named["port"])})
    is_suffix = text.startswith("*.")
    host = normal_host(text[2:] if is_suffix else text)
    if host is None or (is_suffix and (address_of(host) or "." not in host)):
        raise SandboxInputError(
            f"{rule!r} isn't a rule for hosts: write example.org, *.example.org, 192.0.2.1 or one of them with :PORT"
        )
    return _Rule(f".{host}" if is_suffix else host, is_suffix, ports)


def normal_host(text: str) -> str | None:
    """A name in lower-case ASCII without the dot at its end, an address in its standard form, or None for neither.

    Every way to write an address (`127.1`, `0x7f000001`, `[::ffff:7f00:1]`) gives that address, so that none of them
    passes for a name.
    """
    text = text.strip().removesuffix(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    address = address_of(text)
    if address is not None:
        return str(address)
    try:
        name = text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    # A resolver reads a name whose last label is a number as an address, or as an error.
    return (
        name if _NAME.fullmatch(name) and len(name) < 254 and not _NUMBER.fullmatch(name.rpartition(".")[2]) else None
    )


def address_of(text: str) -> Address | None:
    """The address that a text is, in any notation that a resolver would take for one."""
    try:
        return _plain(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(socket.inet_aton(text)) if text.isascii() and " " not in text else None
    except (OSError, ValueError):
        return None


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet's: not of this machine, its network, a link, a cloud's metadata."""
    address = _plain(address)
    if address in _METADATA:
        return False
    refused = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    return address.is_global and not (refused or address.is_reserved or address.is_unspecified)


def _plain(address: Address) -> Address:
    """The IPv4 address inside of an IPv6 one that only carries it."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    carried = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    return carried or address
