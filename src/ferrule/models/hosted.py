"""What hosted models have in common: keys, losses, and how failures are told."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Sequence
from importlib.util import find_spec

from ferrule.capabilities import Loss
from ferrule.errors import ModelError
from ferrule.events import LossesReported
from ferrule.models.gateway import Failure

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 60.0
"""How long a TCP connection may take: less than a server that has one may take to begin its answer, and long enough
that a thousand of them, begun at once by one busy event loop, are no outage."""
_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def key_for(provider: str, model: str, given: str | None, *variables: str) -> str:
    """The key that was given, or that of the first variable that is set. Raises `ModelError` where there is none."""
    key = given or next((value for name in variables if (value := os.environ.get(name))), "")
    if not key.strip():
        raise ModelError(f'no key for {provider}: set {variables[0]}, or give model("{model}", api_key=…)')
    return key.strip()


def require_package(model: str, package: str, module: str, extra: str) -> None:
    """Raise `ModelError` where a provider's package isn't installed. It isn't imported yet: that takes a second."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ModelError(f'model("{model}") needs the {package} package: pip install "ferrule[{extra}]"')


def gateway_key(provider: str, address: str, key: str) -> str:
    """The gateway's name for an address and a key, which doesn't show the key."""
    return f"{provider} {address.rstrip('/')} {hashlib.sha256(key.encode()).hexdigest()[:16]}"


def version_of(model: str) -> tuple[int, int]:
    """The version in a model's name: `claude-opus-4-1-20250805` is (4, 1). A name without one is that of the newest."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


def told(name: str, losses: Sequence[Loss]) -> tuple[LossesReported, ...]:
    """The event that tells of losses, which are logged as well; none where nothing was lost."""
    for loss in losses:
        logger.info("%s: %s: %s", name, loss.kind, loss.detail)
    return (LossesReported(tuple(losses)),) if losses else ()


class RequestFailed(Exception):  # noqa: N818 - it carries the failure's meaning and is caught by the gateway
    """What came was no answer, though no package's exception says so."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_for_status(status: int, message: str, key_hint: str, retry_after: str | None = None) -> Failure:
    """The meaning of an HTTP status. `key_hint` says where the key is from, for those who are refused."""
    if status in (401, 403):
        return Failure("refused", f"{message}; {key_hint}", status)
    if status in (429, 503, 529):
        return Failure("overloaded", message, status, retry_after)
    # 408, 409 and 425 are asked again by the official packages as well.
    if status >= 500 or status in (408, 409, 425):
        return Failure("failed", message, status, retry_after)
    return Failure("bad", message, status)


def no_connection(name: str, address: str, cause: BaseException) -> Failure:
    """That a connection could not be made, or was lost; `cause` is what the transport says of it."""
    import httpx2

    message = f"{name}: no connection to {address}, or it was lost: {str(cause) or type(cause).__name__}"
    return Failure("failed", message, timed_out=isinstance(cause, httpx2.TimeoutException))
