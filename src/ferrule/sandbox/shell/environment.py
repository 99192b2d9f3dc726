"""The environment of a contained command: variables on a list, minus those that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import cache

from ferrule._util.secret_words import may_be_secret_name
from ferrule.errors import SandboxInputError

__all__ = ["PASSED", "clean_environment", "validate_environment"]

# What compilers, interpreters and terminals need. Sockets of agents and sessions (SSH_AUTH_SOCK, DBUS_*, DISPLAY,
# DOCKER_HOST) are left out because each is a way out of the sandbox, LD_* because it loads code.
PASSED: tuple[str, ...] = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    *("CI", "EDITOR", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_*", "UV_*", "PYTHON*", "NVM_*"),
    *("NODE_*", "JAVA_HOME", "GO*", "CARGO_*", "RUSTUP_*", "RUST*", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
    *("CPPFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "OMP_NUM_THREADS", "SOURCE_DATE_EPOCH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)

_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]+@")
_UNATTENDED = {
    # There is no one to page through output, to type a password or to answer a question.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    # A command asks for the hosts that it needs, and not for one where its program looks for a newer version of itself.
    "npm_config_update_notifier": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_fund": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "DENO_NO_UPDATE_CHECK": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    "CHECKPOINT_DISABLE": "1",
    "YARN_ENABLE_TELEMETRY": "0",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "DO_NOT_TRACK": "1",
    # Python takes a compiled file for that of a source of the same size and second, and a model edits faster than that.
    "PYTHONDONTWRITEBYTECODE": "1",
}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def clean_environment(
    source: Mapping[str, str], *, passed: Iterable[str] = PASSED, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of `source` that `passed` names (patterns such as `LC_*` are allowed), without secrets.

    A variable that matches only a pattern is dropped if its name may be that of a secret (`_util/secret_words.py`); any
    variable is dropped if its value has a password in a URL. `given` comes from the user and is taken as it is.
    """
    exact, matches = _split_patterns(tuple(passed))
    environment = {
        name: value
        for name in source
        if (name in exact or (matches(name) and not may_be_secret_name(name)))
        and not _PASSWORD_IN_ADDRESS.search(value := source[name])
    }
    environment.setdefault("PATH", _DEFAULT_PATH)
    environment.setdefault("HOME", "/")
    return environment | _UNATTENDED | dict(given or {})


def validate_environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables. Raises `SandboxInputError` if a process can't be started with them."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise SandboxInputError(
                f"the environment can't have {name!r}: it has a null byte, or the name is empty or has ="
            )
    return variables


@cache
def _split_patterns(names: tuple[str, ...]) -> tuple[frozenset[str], Callable[[str], object]]:
    """The names, and a matcher for those that are patterns."""
    patterns = "|".join(translate(name) for name in names if "*" in name)
    return frozenset(names), re.compile(patterns or r"(?!)").match
