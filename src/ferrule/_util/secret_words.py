"""The words by which a name says that its value is a secret, with two strictnesses.

What is recorded loses a value only if the name is sure, since an argument `key` or `session` has to stay. The
environment of a command loses each variable whose name may be that of a secret: too much does no harm there.
"""

from __future__ import annotations

import re
from typing import Final

ANYWHERE: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "credential", "authorization", "cookie", "bearer"),
)
"""Sure in any part of a name: `client_secret_id`."""
KEYS: Final = (
    *("access", "account", "admin", "api", "app", "auth", "consumer", "deploy", "encryption", "license", "master"),
    *("private", "secret", "service", "shared", "signing", "storage", "subscription", "webhook"),
)
"""Sure before `key`: `AccountKey`. Others, such as `primary_key` and `public_key`, are no secrets."""
LAST: Final = ("token", "tokens", "pass", "pwd", "jwt", "auth")
"""Sure at the end of a name: `db_pass`, but neither `pass_rate` nor `token_count`."""
NO_PASS: Final = ("bypass", "compass", "encompass", "overpass", "surpass", "trespass", "underpass")
"""Words that end in `pass` and mean something else."""
COUNTED: Final = ("tokens", "pass")
"""Those whose values are secrets only if they are texts: `max_tokens` and `pass` may also be numbers."""
PASSWORD_IN_ADDRESS: Final = r"(?<=://)[^\s/@:\"'<>]*:[^\s/\"'<>]+(?=@)"
"""A user and a password in an address, as a pattern."""

_POSSIBLE: Final = re.compile(
    r"key|token|secret|pass(?!ed)|pwd|cred|auth|cookie|session|dsn|cert|private|jwt|bearer", re.IGNORECASE
)


def may_be_secret_name(name: str) -> bool:
    """Whether a value of this name may be a secret: also one that often isn't, such as `SESSION`."""
    return _POSSIBLE.search(name) is not None
