"""The profiles of a Python run and of a shell command. Pure functions: the caller checks and resolves the paths.

What a program needs to start under `(deny default)` is taken from published profiles that agree on it: the root folder
itself since macOS 26, the loader's cache, the system's libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

from ferrule.sandbox.macos.sbpl import Profile, ProfileBuilder

__all__ = ["make_python_profile", "make_shell_profile"]

_READING: Final = "file-read* file-test-existence"
_LIBRARIES: Final = (
    *("/usr/lib", "/usr/share/zoneinfo", "/usr/share/locale", "/usr/share/icu"),
    *("/System/Library/dyld", "/System/Library/Frameworks", "/System/Library/PrivateFrameworks"),
    *("/System/Library/SubFrameworks", "/System/Cryptexes/OS", "/System/Volumes/Preboot/Cryptexes/OS"),
    *("/Library/Apple/usr/lib", "/Library/Apple/System/Library/Frameworks", "/private/var/db/dyld"),
    *("/private/var/db/timezone", "/System/Library/Fonts", "/Library/Fonts"),
)
_VERSIONS: Final = (
    "/System/Library/CoreServices/SystemVersion.plist",
    "/System/Library/CoreServices/.SystemVersionPlatform.plist",
)
_LINKS: Final = ("/etc", "/tmp", "/var", "/private/etc/localtime")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
# Without `kern.proc`, which lists other processes.
_SYSCTL_NAMES: Final = (
    *("kern.argmax", "kern.hostname", "kern.maxfilesperproc", "kern.osproductversion", "kern.osrelease"),
    *("kern.ostype", "kern.osvariant_status", "kern.osversion", "kern.secure_kernel", "kern.usrstack64"),
    *("kern.version", "kern.bootargs", "sysctl.proc_cputype", "vm.loadavg"),
)
_SYSCTL_PREFIXES: Final = ("hw.", "machdep.cpu.")
_USERS: Final = "com.apple.system.opendirectoryd.libinfo"
# Without `com.apple.SecurityServer`, which opens keychains, and launch services, which start programs outside.
_NETWORK_SERVICES: Final = (
    *("com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration"),
    *("com.apple.dnssd.service", "com.apple.networkd", "com.apple.trustd", "com.apple.trustd.agent", "com.apple.ocspd"),
)
_RESOLVER: Final = "/private/var/run/mDNSResponder"


def make_python_profile(
    *, readable: Iterable[str], links: Iterable[str], listed: Iterable[str], programs: Iterable[str], scratch: str
) -> Profile:
    """Make the profile of one run: it can read `readable` and the system's libraries, and write below `scratch`.

    `links` are the symbolic links on the way to readable paths, `listed` are folders that can only be listed,
    `programs` the files that an interpreter is started from. Other programs, processes, the network and signals are
    denied.
    """
    seen = (*_LIBRARIES, *readable)
    rules = ProfileBuilder()
    rules.add_path_rule("allow process-exec", at=programs)
    rules.add(
        "(allow signal (target self))",
        "(allow process-info* (target self))",
        *_make_sysctl_rules(),
        _make_lookup_rule([_USERS]),
    )
    rules.add_path_rule(f"allow {_READING} file-map-executable", below=seen)
    rules.add_path_rule(f"allow {_READING}", at=("/", *listed, *links, *_LINKS, *_VERSIONS, *_DEVICES))
    rules.add_path_rule(
        "allow file-read-metadata file-test-existence", at=_list_parent_folders((*seen, *links, *listed, scratch))
    )
    rules.add_path_rule("allow file-write-data file-ioctl", at=_DEVICES)
    rules.add_path_rule(f"allow {_READING} file-write*", below=[scratch])
    return rules.build()


def make_shell_profile(
    *,
    rules: Sequence[tuple[str, str]],
    scratch: str,
    absent: Iterable[str] = (),
    network: bool | int,
) -> Profile:
    """Make the profile of one command: `rules` are real paths with `hidden`, `read` or `write`; deeper ones override.

    `scratch` is the temporary folder. `absent` are protected paths that don't exist and must not be created. `network`
    is False (none), True (all), or the port of a proxy on this machine.
    """
    builder = ProfileBuilder()
    builder.add("(allow process-exec)", "(allow process-fork)", "(allow signal (target same-sandbox))")
    builder.add("(allow process-info* (target same-sandbox))", "(allow file-map-executable)", "(allow ipc-posix-sem)")
    builder.add(*_make_sysctl_rules(), _make_lookup_rule([_USERS]), *_make_network_rules(network))
    placed = sorted(rules, key=lambda rule: (len(PurePosixPath(rule[0]).parts), rule[0]))
    for path, access in placed:
        _add_access_rules(builder, path, access)
    builder.add_path_rule(f"allow {_READING} file-write-data file-ioctl", below=["/dev/fd"], at=_DEVICES)
    builder.add_path_rule(f"allow {_READING}", at=("/", "/dev", *_LINKS))
    builder.add_path_rule(f"allow {_READING} file-write*", below=[scratch])
    builder.add_path_rule("deny file-write*", below=absent)
    reached = [path for path, access in placed if access != "hidden"]
    builder.add_path_rule("allow file-read-metadata file-test-existence", at=_list_parent_folders((*reached, scratch)))
    # Renaming a folder would move its content away from the rules for its path.
    pinned = [path for path, access in placed if access != "write" and path != "/"]
    builder.add_path_rule("deny file-write-create file-write-unlink", at=_list_parent_folders((*pinned, *absent)))
    return builder.build()


def _add_access_rules(rules: ProfileBuilder, path: str, access: str) -> None:
    if access == "hidden":
        rules.add_path_rule("deny file-read* file-test-existence file-write*", below=[path])
        return
    rules.add_path_rule(f"allow {_READING}" + (" file-write*" if access == "write" else ""), below=[path])
    if access == "read":
        rules.add_path_rule("deny file-write*", below=[path])


def _make_network_rules(network: bool | int) -> list[str]:
    if network is False:
        return []
    if network is not True:
        return [f'(allow network-outbound (remote ip "localhost:{network}"))']
    return [
        '(allow network-outbound (remote ip "*:*"))',
        '(allow network-inbound (local ip "*:*"))',
        '(allow network-bind (local ip "*:*"))',
        f'(allow network-outbound (literal "{_RESOLVER}"))',
        "(allow system-socket)",
        _make_lookup_rule(_NETWORK_SERVICES),
    ]


def _make_sysctl_rules() -> list[str]:
    names = [f'(sysctl-name "{name}")' for name in _SYSCTL_NAMES]
    names += [f'(sysctl-name-prefix "{name}")' for name in _SYSCTL_PREFIXES]
    return [f"(allow sysctl-read {' '.join(names)})"]


def _make_lookup_rule(names: Iterable[str]) -> str:
    services = [f'(global-name "{name}")' for name in names]
    return f"(allow mach-lookup {' '.join(services)})"


def _list_parent_folders(paths: Iterable[str]) -> list[str]:
    """List the parent folders of paths, without the root."""
    return sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"/"})
