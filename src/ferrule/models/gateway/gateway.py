"""Every request to a provider goes through the gateway of its address.

All conversations of a process share it: it limits concurrency, retries what can be retried, sends nothing to a provider
that is down, and measures latencies. It is independent of protocols: a model passes a function that opens a request,
and one that explains exceptions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from random import Random
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from ferrule.errors import ProviderError, StreamBroken
from ferrule.models.gateway.attempt import EndpointAttempt
from ferrule.models.gateway.endpoint import EndpointState
from ferrule.models.gateway.report import GatewayReport
from ferrule.models.gateway.retries import (
    PromptTooLong,
    RequestFailure,
    ToolsRefused,
    draw_backoff,
    parse_retry_after,
)
from ferrule.models.gateway.settings import GatewaySettings

Chunk = TypeVar("Chunk")
NOT_YET: Any = object()
"""In place of a first chunk: the answer has begun, and nothing of it that can be passed on is there."""
FailureOf: TypeAlias = Callable[[Exception], RequestFailure | None]

logger = logging.getLogger(__name__)


class Gateway:
    """Sends requests to one address with one key. Usable from several event loops at once."""

    def __init__(self, key: str, settings: GatewaySettings | None = None, random: Random | None = None) -> None:
        self.key = key
        # The third word of a key identifies the secret, which must not appear in messages.
        self._endpoint = EndpointState(" ".join(key.split()[:2]), settings or GatewaySettings())
        self._random = random or Random()

    @property
    def settings(self) -> GatewaySettings:
        """The settings for the next attempt."""
        return self._endpoint.settings

    @settings.setter
    def settings(self, settings: GatewaySettings) -> None:
        self._endpoint.settings = settings

    async def stream(
        self, start: Callable[[], Awaitable[AsyncIterable[Chunk]]], failure_of: FailureOf
    ) -> AsyncGenerator[Chunk, None]:
        """The chunks of one request.

        `start` opens the request, and is called again for each further attempt; `failure_of` explains an exception of
        it, or of its chunks, and returns None for one that isn't the provider's, which is raised unchanged. What
        `start` returned is always closed.

        Raises `Overloaded` if too many requests already wait, `ProviderError` if the request failed permanently, and
        `StreamBroken` if it failed after its first chunk was passed on: such a request is not retried.
        """
        attempt = EndpointAttempt(asyncio.get_running_loop())
        while True:
            await self._enter(attempt)
            watch = attempt.watch
            try:
                async for chunk in await attempt.open(start, self.settings.timeouts):
                    if watch.end_wait():
                        if chunk is NOT_YET:
                            attempt.watch_silence(self.settings.timeouts)
                            watch.begin_wait()
                            continue
                        self._endpoint.record_first_chunk(attempt, attempt.record_first_chunk(self.settings.timeouts))
                    yield chunk
                    watch.begin_wait()
                watch.end_wait()
                self._endpoint.record_success(attempt)
                return
            except (Exception, asyncio.CancelledError) as error:
                failure = attempt.explain(error, failure_of, self._endpoint.name)
                if failure is None:
                    raise
                delay = self._compute_delay(attempt, failure, error)
            finally:
                try:
                    await attempt.close()
                finally:
                    self._endpoint.record_close(attempt)
            await asyncio.sleep(delay)
            attempt = attempt.make_next()

    async def _enter(self, attempt: EndpointAttempt) -> None:
        """Wait until an attempt may be sent; from then on it has a slot."""
        endpoint = self._endpoint
        await endpoint.acquire_slot(attempt)
        try:
            reserved = endpoint.reserve_send_time(attempt)
            while (rest := endpoint.get_seconds_until_send(attempt, reserved)) > 0:
                endpoint.refuse_if_unavailable(attempt)
                await asyncio.sleep(rest)
            endpoint.record_send(attempt)
        except BaseException:
            endpoint.release_slot()
            raise

    def _compute_delay(self, attempt: EndpointAttempt, failure: RequestFailure, error: BaseException) -> float:
        """Seconds to wait before the next attempt. Raises if there should be none."""
        settings = self.settings
        is_final = failure.kind in ("refused", "bad")
        asked = 0.0 if is_final else parse_retry_after(failure.retry_after, time.time())
        pause = min(asked, settings.longest_pause)
        self._endpoint.record_failure(attempt, failure, pause)
        if attempt.has_passed_on:
            raise StreamBroken(f"{failure.message} (in the middle of the answer)", failure.status) from error
        if is_final:
            raise _choose_error(failure)(failure.message, failure.status) from error
        delay = draw_backoff(attempt.number, settings.first_delay, settings.longest_delay, self._random)
        # All requests wait for the time that the provider gives, before the attempt is sent.
        wait = max(delay, pause)
        spent = attempt.loop.time() - attempt.first_started
        if attempt.number >= settings.attempts:
            why = f"at most {settings.attempts} are made"
        elif spent + wait > settings.total_time:
            why = f"the next would be {wait:.1f} s later, beyond the {settings.total_time:g} s that a request may take"
        else:
            logger.info("%s; attempt %d in %.1f s", failure.message, attempt.number + 1, wait)
            return delay
        tried = f"{attempt.number} attempt{'s' * (attempt.number > 1)} in {spent:.1f} s"
        raise ProviderError(f"{failure.message} ({tried}; {why})", failure.status) from error

    def report(self) -> GatewayReport:
        """What was sent, the outcomes, and the current state."""
        try:
            now = asyncio.get_running_loop().time()
        except RuntimeError:
            # The clock of event loops by default.
            now = time.monotonic()
        return self._endpoint.report(now)


_lock = Lock()
_gateways: dict[str, Gateway] = {}
_configured: dict[str, GatewaySettings] = {}


def get_gateway(key: str, settings: GatewaySettings | None = None) -> Gateway:
    """The process's one gateway for a key such as `openai https://api.openai.com/v1 <hash of the secret>`.

    Settings, if given, apply from now on, for all users of the gateway.
    """
    with _lock:
        gateway = _gateways.get(key)
        if gateway is None:
            gateway = _gateways[key] = Gateway(key, settings or _find_settings(key))
    if settings is not None:
        gateway.settings = settings
    return gateway


def configure(address_prefix: str, settings: GatewaySettings) -> None:
    """Set the behavior of all gateways, existing and future, whose key, or the address in it, has this prefix.

    The longest matching prefix counts.
    """
    with _lock:
        _configured[address_prefix] = settings
        concerned = [gateway for key, gateway in _gateways.items() if _find_longest_prefix(key) == address_prefix]
    for gateway in concerned:
        gateway.settings = settings


def _find_settings(key: str) -> GatewaySettings | None:
    prefix = _find_longest_prefix(key)
    return None if prefix is None else _configured[prefix]


def _find_longest_prefix(key: str) -> str | None:
    address = key.partition(" ")[2]
    return max(
        (prefix for prefix in _configured if key.startswith(prefix) or address.startswith(prefix)),
        key=len,
        default=None,
    )


def _choose_error(failure: RequestFailure) -> type[ProviderError]:
    return PromptTooLong if failure.is_too_long else ToolsRefused if failure.refuses_tools else ProviderError
