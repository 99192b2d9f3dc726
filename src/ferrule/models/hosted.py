"""What all hosted models have in common: a key, an address, its gateway, and one `stream`.

A provider's model defines what it sends (`render_request`), what each event of the answer is (`classify_event`), and
how these events become a message (`make_reader`). Everything else is here.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from ferrule._util.async_closing import AsyncClosing
from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, Message
from ferrule.errors import ModelError, ProviderError, StreamBroken, choose_advice
from ferrule.events import Event, LossesReported, MessageFinished, Usage
from ferrule.execution.secrets import SCRUBBED
from ferrule.formats.openai_reading import EXTRA as OPENAI_EXTRA
from ferrule.formats.tool_offers import ToolNames
from ferrule.models import http
from ferrule.models.failures import explain_error_event, explain_status
from ferrule.models.gateway import NOT_YET, Gateway, PromptTooLong, RequestFailure, get_gateway
from ferrule.models.keys import KeyFunction, KeySource, read_keys
from ferrule.models.protocol import ModelSettings, refuse_unknown_settings, refuse_unoffered_choice
from ferrule.models.providers import Provider, find_provider
from ferrule.toolspec import ToolSpec

logger = logging.getLogger(__name__)
_SHORTEST_SECRET = 4
"""Characters of a key or password that is removed from errors: a shorter one occurs in ordinary words."""
_REFUSALS = frozenset(
    {"content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"}
    | {"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"}
)
"""Why an answer ended, in the words of the providers, where it was refused or withheld."""
_WRONG_FORM = (AttributeError, LookupError, TypeError, ValueError)  # raised by readers for fields of other types
_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

EventKind: TypeAlias = Literal["preamble", "opening", "content", "end"]
"""A `preamble` shows that the request was accepted, before any of the answer; an `opening` that a part of the answer
follows, of which nothing is there yet; the `end` comes once it is complete."""


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """What is posted: JSON to a path below the provider's address."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_default_limit: bool = False
    """Whether the limit of the answer in it is the model's default, which may be lowered."""


class RequestClient(Protocol):
    """Sends requests, usable from several event loops."""

    async def open(self) -> None:
        """Create what this event loop needs to send: that must not count as the provider's time."""

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Send a request; returns the JSON objects of its answer, as `http.EventStreamClient` does."""
        ...

    async def aclose(self) -> None:
        """Close the connections of this event loop."""


class AnswerReader(Protocol):
    """Reads the decoded events of one answer, in order."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing arrived that could be kept."""
        ...

    @property
    def losses(self) -> Sequence[Loss]:
        """What of the answer can't be part of a message."""
        ...

    @property
    def end_reason(self) -> str:
        """Why the answer ended, in the provider's words; empty until then."""
        ...

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The events that a provider's event adds."""
        ...

    def close(self, is_broken: bool) -> list[Event]:
        """The remaining events when the stream ends. `is_broken`: it stopped in the middle."""
        ...

    def finish(self, is_broken: bool) -> MessageFinished:
        """The message, with what must be sent back to the provider besides its parts; call `close` first."""
        ...


class HostedModel(AsyncClosing):
    """A model behind a provider's HTTP API. Raises `ModelError` for a missing key, address or package."""

    capabilities: Capabilities
    may_refuse_tools = True
    """Whether its server may answer that it takes no tools; see `native_or_text.py`."""
    address_has_version = False
    """Whether its address ends with the version of the API, such as `/v1`."""
    takes_key_function = True
    """Whether `api_key` may be a function, which is asked before each request."""
    _refused: frozenset[str] = frozenset()
    """The parts of a request that its server has refused, and that are no longer sent; see `refusals.py`."""
    _own_rotation = "give client="
    """What to do about keys that change where it may not."""

    def __init__(
        self, name: str, provider: str | Provider, api_key: str | KeyFunction | None, base_url: str | None
    ) -> None:
        self.provider = find_provider(provider)
        self.model = name
        self.name = f"{self.provider.name}:{name}"
        # A password in the address must appear in no message and no log, so the client gets it separately.
        self.address, self._login = http.split_login(base_url or self.provider.address)
        self._check_installation()
        self._key_function = KeySource(api_key, self.name) if callable(api_key) else None
        if self._key_function is not None and not self.takes_key_function:
            raise ModelError(f"{self.name}: api_key must be a text here, or {self._own_rotation}")
        key = "" if callable(api_key) else self._find_key(api_key)
        self._secrets = [one for one in (key, *(self._login or ("", ""))[1:]) if len(one) >= _SHORTEST_SECRET]
        self._client = self.make_client(key)
        # One gateway for both of OpenAI's APIs: its limits are per account.
        owner = self.provider.name.removesuffix("-responses")
        account = key if self._login is None else f"{self._login} {key}"
        if callable(api_key):  # one account, whatever its key is at the moment
            account = f"{account} of the function {id(api_key)}"
        self._gateway = get_gateway(name_gateway(owner, self.address, account))

    def _check_installation(self) -> None:
        if not http.is_installed():
            raise ModelError(f'{self.name} needs the {http.PACKAGE} package: pip install "ferrule[{http.EXTRA}]"')
        if not self.address:
            where = choose_advice(f'model("{self.name}", base_url="http://…/v1")', "--base-url http://…/v1")
            raise ModelError(f"no address for {self.name}: give {where}")
        if problem := http.find_address_problem(self.address):
            raise ModelError(f"{self.name}: {self._address_option} {self.address!r} {problem}")

    def _find_key(self, given: str | None) -> str:
        """The given key, or that of the first variable that is set, or the saved one; empty if there is none and none
        is needed."""
        keys = self.provider.keys
        key = (given or next((value for name in keys if (value := os.environ.get(name, "").strip())), "")).strip()
        if given is None and not key and keys:
            key = read_keys().get(keys[0], "").strip()
        if self.provider.needs_key and not key:
            raise ModelError(f"no key for {self.provider.label}: set {keys[0]}, or {self._key_source}")
        if not key.isascii() or not key.isprintable():
            raise ModelError(f"the key for {self.provider.label} contains invalid characters: {self._key_hint}")
        return key

    @property
    def gateway(self) -> Gateway:
        """What sends its requests, shared with all models of this address and key: its `report()` counts them."""
        return self._gateway

    def stop_native_tools(self) -> None:
        """Offer no tools by the API from now on, since its server has refused them."""
        self.capabilities = replace(self.capabilities, native_tools=False)

    def can_send_schema(self, with_tools: bool) -> bool:
        """Whether a schema of the answer may be part of a request; else it is stated in the prompt."""
        if "schema" in self._refused or not with_tools:
            return "schema" not in self._refused
        # Behind another address than the provider's own, there may be a server that enforces it by a grammar.
        return self.provider.schema_with_tools and self.provider.base_url in ("", self.address.rstrip("/"))

    def _move_refused(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> tuple[Conversation, ModelSettings]:
        """Move what the server doesn't take: a schema of the answer, or the system message."""
        if settings.output_schema is not None and not self.can_send_schema(bool(tools)):
            from ferrule.models.answer_schema import move_schema_to_prompt

            conversation, settings = move_schema_to_prompt(conversation, settings, bool(tools))
        if "system" in self._refused:
            from ferrule.models.refusals import merge_system

            conversation = merge_system(conversation)
        return conversation, settings

    def make_client(self, key: str) -> RequestClient:
        """What sends the requests; `key` is empty if there is none."""
        return http.EventStreamClient(self.address, self.make_auth_headers(key), self._login, self.split_answer)

    async def fetch_json(self, path: str) -> Any:
        """Get a JSON value from a path of the server, such as `/v1/models`.

        Raises `ValueError` if it isn't JSON or the client can't get any, and httpx2's errors.
        """
        if not isinstance(self._client, http.EventStreamClient):
            raise ValueError(f"{self.name}: its client only sends messages")
        headers = {} if self._key_function is None else self.make_auth_headers(await self._key_function.fetch())
        return await self._client.get(path, headers)

    @abstractmethod
    def make_auth_headers(self, key: str) -> dict[str, str]:
        """The headers of every request; `key` is empty if there is none."""

    @abstractmethod
    def render_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings, names: ToolNames
    ) -> tuple[ProviderRequest, list[Loss]]:
        """The request for a conversation already fitted by `adapt`, and what could not be written."""

    @abstractmethod
    def classify_event(self, event: Mapping[str, Any]) -> EventKind:
        """What an event is. Raises `AttemptError` for one that reports a failure.

        After the first content, only the end is told from the rest.
        """

    def split_answer(self, body: Any) -> http.Events | None:  # noqa: ARG002 - for those that read none
        """The events of an answer that the server sent as one JSON value; None if `body` is something else."""
        return None

    @abstractmethod
    def make_reader(self, conversation: Conversation, names: ToolNames) -> AnswerReader:
        """A reader for the answer to this conversation."""

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ProviderError` if the provider refuses or fails, and `StreamBroken` if the answer
        stops before anything that can be kept; one that stops later ends with what arrived. A prompt that is too long
        for the model is answered by an empty message that stops with `context`."""
        refuse_unknown_settings(settings, self.capabilities.settings, self.name)
        refuse_unoffered_choice(settings, tools, self.name)
        names = ToolNames(tools)
        shown, asked = self._move_refused(conversation, tools, settings)
        fitted, losses = adapt(shown, self.capabilities)
        request, more = self.render_request(fitted, tools, asked, names)
        for event in self._report([*losses, *more]):
            yield event
        await self._client.open()
        reader = self.make_reader(conversation, names)
        is_broken = False
        try:
            chunks = self._gateway.stream(lambda: self._send(request), self._explain)
            async with aclosing(chunks):
                async for chunk in chunks:
                    for event in self._feed(reader, chunk):
                        yield event
        except StreamBroken as error:
            if reader.is_empty:
                raise
            is_broken = True
            for event in self._report([Loss("text", str(error))]):
                yield event
        except ProviderError as error:
            from ferrule.models.refusals import list_parts

            again = self.stream(conversation, tools, settings)
            async for event in self._recover(error, list_parts(request.body, shown, asked), again):
                yield event
            return
        for event in (*reader.close(is_broken), *self._finish(reader, is_broken)):
            yield event

    def _feed(self, reader: AnswerReader, chunk: Mapping[str, Any]) -> list[Event]:
        try:
            return reader.feed(chunk)
        except _WRONG_FORM as error:
            problem = f"{self.name}: an event of the answer is {http.report_wrong_form(chunk)}"
            raise StreamBroken(self._conceal(problem)) from error

    async def _recover(
        self, error: ProviderError, sent: Collection[str], again: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """The events of a refused request: those of the same request without the part in `sent` that was refused, and
        an empty message if the prompt is too long. Raises any other error."""
        if isinstance(error, PromptTooLong):
            refused = MessageFinished(Message("assistant", ()), Usage(), "context")
            for event in (*self._report([Loss("text", str(error))]), refused):
                yield event
            return
        from ferrule.models.refusals import find_refused_part

        found = find_refused_part(error, sent)
        if found is None:
            raise error
        part, notice = found
        if part not in self._refused:  # by another request meanwhile
            logger.warning("%s; %s", str(error).rstrip("."), notice)
        self._refused |= {part}
        async with aclosing(again) as events:
            async for event in events:
                yield event

    def _finish(self, reader: AnswerReader, is_broken: bool) -> tuple[Event, ...]:
        """The last events of an answer, once the reader is closed."""
        finished = reader.finish(is_broken)
        losses = self._report([*reader.losses, *self._report_early_end(finished, reader, is_broken)])
        return *losses, finished if is_broken else _mark_refusal(finished, reader.end_reason)

    async def _send(self, request: ProviderRequest) -> AsyncGenerator[Mapping[str, Any], None]:
        if self._key_function is None:
            return self._read(await self._client.post(request.path, request.body, request.headers))
        key = await self._key_function.fetch()
        try:
            return await self._send_with_key(request, key)
        except http.BadStatusError as error:
            # The key may have been replaced after it was fetched.
            if error.status != 401 or (newer := await self._key_function.fetch()) == key:
                raise
            return await self._send_with_key(request, newer)

    async def _send_with_key(self, request: ProviderRequest, key: str) -> AsyncGenerator[Mapping[str, Any], None]:
        headers = {**request.headers, **self.make_auth_headers(key)}
        return self._read(await self._client.post(request.path, request.body, headers))

    async def _read(self, events: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[Mapping[str, Any], None]:
        """The events of one attempt. Those before any content are held back, because a request is retried only if
        nothing was passed on, and an overload is often reported right after the beginning. From the first opening on,
        each shows that the server is at work."""
        held: list[Mapping[str, Any]] | None = []
        has_opened = has_ended = False
        async with aclosing(events):
            async for event in events:
                if event is http.DONE and (has_ended or held is not None):
                    continue  # it ends an answer that has begun and doesn't say why it ended
                if error := event.get("error"):
                    raise self.fail(error)
                try:
                    kind = self.classify_event(event)
                except _WRONG_FORM as problem:
                    raise http.report_wrong_form(event) from problem
                has_ended = has_ended or kind == "end"
                if held is not None:
                    if kind in ("preamble", "opening"):
                        held.append(event)
                        has_opened = has_opened or kind == "opening"
                        if has_opened:
                            yield NOT_YET
                        continue
                    for earlier in held:
                        yield earlier
                    held = None
                yield event
        if not has_ended:
            raise AttemptError(RequestFailure("failed", f"{self.name}: the answer stopped before its end"))

    def _explain(self, error: Exception) -> RequestFailure | None:
        """What an exception means, without secrets. None: it does not come from the request or the answer."""
        failure = self._interpret(error)
        if isinstance(error, http.NotAnEventStreamError | http.UnreadableEventError):
            error.args = (self._conceal(str(error)),)  # it is shown above ours in a traceback
        return failure and replace(failure, message=self._conceal(failure.message))

    def _conceal(self, message: str) -> str:
        """Replace what the client signs in with: some servers repeat it in their errors."""
        fetched = () if self._key_function is None else self._key_function.seen
        for secret in (*self._secrets, *fetched):
            message = message.replace(secret, SCRUBBED)
        return message

    def _interpret(self, error: Exception) -> RequestFailure | None:
        import httpx2

        if isinstance(error, AttemptError):
            return error.failure
        if isinstance(error, http.BadStatusError):
            failure = explain_status(error.status, error.headers, error.body, self._sender, self._key_hint)
            hint = self._suggest_address() if error.status in (404, 405) else ""
            if not hint and error.status in (404, 405) and not isinstance(error.body, dict):
                # A server that implements this API would report in JSON what it doesn't find.
                hint = f"is {self.address} the right {self._address_option}?"
            return _add_hint(failure, hint)
        if isinstance(error, http.NotAnEventStreamError):
            hint = self._suggest_address()
            if error.reported:
                return _add_hint(explain_error_event(error.reported, self._sender, self._key_hint), hint)
            failure = RequestFailure("bad", f"{self.name}: {self.address} answers with {error}")
            return _add_hint(failure, hint or f"is that the address of {self.provider.label}'s API?")
        if isinstance(error, http.UnreadableEventError):
            return RequestFailure("failed", f"{self.name}: an event of the answer is {error}")
        if isinstance(error, httpx2.RequestError | httpx2.InvalidURL):
            return self._explain_transport(error)
        return None

    def _suggest_address(self) -> str:
        """What the address should end with, if it seems to be wrong."""
        is_usual = self.address.rstrip("/") == self.provider.base_url.rstrip("/")
        meant = http.suggest_address(self.address, self.address_has_version)
        if is_usual or meant == self.address.rstrip("/") or not isinstance(self._client, http.EventStreamClient):
            return ""
        ending = f"end with {meant[-3:]}" if meant.endswith("/v1") else "end before the path of a request"
        return f"{self._address_option} should {ending}: {meant}"

    def _explain_transport(self, error: Exception) -> RequestFailure:
        import httpx2

        cause = str(error) or type(error).__name__
        if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
            return RequestFailure("bad", f"{self.name}: {self.address} is not a valid address: {cause}")
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            is_own = not self.provider.needs_key
            hint = f"is the server running, and is {self._address_option} right?" if is_own else "is the network up?"
            return RequestFailure("failed", f"{self.name}: no connection to {self.address}: {cause}; {hint}")
        return RequestFailure("failed", f"{self.name}: the connection to {self.address} was lost: {cause}")

    def fail(self, error: Any) -> AttemptError:
        """The exception for an error that the provider reports in the middle of an answer."""
        failure = explain_error_event(error, self._sender, self._key_hint)
        return AttemptError(replace(failure, message=self._conceal(failure.message)))

    @property
    def _sender(self) -> str:
        return f"{self.name}: {self.provider.label}"

    @property
    def _key_hint(self) -> str:
        if not self.provider.key:
            return f"check what it signs in with: {self.provider.sign_in}"
        return f"check {self.provider.keys[0]}, or {self._key_source}"

    @property
    def _key_source(self) -> str:
        """Another way to give a key than by the environment."""
        return choose_advice(f'give model("{self.name}", api_key=…)', f"run: ferrule keys set {self.provider.name}")

    @property
    def _address_option(self) -> str:
        return choose_advice("base_url", "--base-url")

    def _report_early_end(self, finished: MessageFinished, reader: AnswerReader, is_broken: bool) -> list[Loss]:
        if finished.stop != "error" or is_broken or not reader.end_reason:
            return []
        return [Loss("answer", self._conceal(f"{self.provider.label} ended the answer: {reader.end_reason}"))]

    def _report(self, losses: Sequence[Loss]) -> tuple[Event, ...]:
        """The event that reports losses, which are also logged; none if nothing was lost."""
        for loss in losses:
            logger.info("%s: %s: %s", self.name, loss.kind, loss.detail)
        return (LossesReported(tuple(losses)),) if losses else ()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._client.aclose()


def _add_hint(failure: RequestFailure, hint: str) -> RequestFailure:
    return replace(failure, message=f"{failure.message.rstrip('.')}; {hint}") if hint else failure


def _mark_refusal(finished: MessageFinished, end_reason: str) -> MessageFinished:
    """The same end, as a refusal if the model refused or the provider withheld the answer."""
    said = finished.message.extra.get(OPENAI_EXTRA, {}).get("refusal", "")
    if not said and end_reason.partition(":")[0] not in _REFUSALS:
        return finished
    if finished.stop == "calls" and not finished.message.is_cut_off:
        return finished  # complete calls are answered, however the message ended
    return replace(finished, stop="refusal", detail=said or end_reason)


class AttemptError(Exception):
    """One attempt failed, for the reason in `failure`."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def name_gateway(provider: str, address: str, key: str) -> str:
    """The gateway's name for an address and a key, without exposing the key."""
    return f"{provider} {address.rstrip('/')} {hashlib.sha256(key.encode()).hexdigest()[:16]}"


def get_fields(sent: Any) -> Mapping[str, Any]:
    """The fields of decoded JSON; none if it is not an object."""
    return sent if isinstance(sent, dict) else {}


def find_version(model: str) -> tuple[int, int]:
    """The version in a model's name: `claude-opus-4-1-20250805` is (4, 1). A name without one counts as the newest."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)
