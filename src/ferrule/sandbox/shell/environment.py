"""The environment of a contained command: variables on a list, minus those that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import cache

__all__ = ["PASSED", "clean_environment"]

# What compilers, interpreters and terminals need. Sockets of agents and sessions (SSH_AUTH_SOCK, DBUS_*, DISPLAY,
# DOCKER_HOST) are left out because each is a way out of the sandbox, LD_* because it loads code.
PASSED: tuple[str, ...] = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    *("CI", "EDITOR", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_*", "UV_*", "PYTHON*", "NVM_*"),
    *("NODE_*", "JAVA_HOME", "GO*", "CARGO_*", "RUSTUP_*", "RUST*", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
    *("CPPFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "OMP_NUM_THREADS", "SOURCE_DATE_EPOCH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)

_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS(?!ED)|PWD|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|CERT|PRIVATE", re.IGNORECASE
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]+@")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def clean_environment(
    source: Mapping[str, str], *, passed: Iterable[str] = PASSED, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of `source` that `passed` names (patterns such as `LC_*` are allowed), without secrets.

    A variable that matches only a pattern is dropped if its name suggests a key, token, password or the like; any
    variable is dropped if its value has a password in a URL. `given` comes from the user and is taken as it is.
    """
    exact, matches = _split_patterns(tuple(passed))
    environment = {
        name: value
        for name, value in source.items()
        if (name in exact or (matches(name) and not _SECRET_NAME.search(name)))
        and not _PASSWORD_IN_ADDRESS.search(value)
    }
    environment.setdefault("PATH", _DEFAULT_PATH)
    environment.setdefault("HOME", "/")
    # There is no one to page through output, to type a password or to answer a question.
    environment |= {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "DEBIAN_FRONTEND": "noninteractive"}
    return environment | dict(given or {})


@cache
def _split_patterns(names: tuple[str, ...]) -> tuple[frozenset[str], Callable[[str], object]]:
    """The names, and a matcher for those that are patterns."""
    patterns = "|".join(translate(name) for name in names if "*" in name)
    return frozenset(names), re.compile(patterns or r"(?!)").match
