"""Answers what MCP servers ask in a session: by the person at the terminal, or by the model under the policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from ferrule._util.terminal_text import escape_line
from ferrule.conversation import Conversation, ToolCall, ToolResult
from ferrule.errors import ToolFailed
from ferrule.execution import Approver, Decision, Executor, Policy
from ferrule.execution.approver import confirms_edits
from ferrule.execution.decisions import ApprovalRequest
from ferrule.mcp.requests import ClientAnswers, ElicitationRequest, SamplingAnswer, SamplingRequest
from ferrule.session.approvals import DenyAll, Permissions
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline

SAMPLING_TOOL = "sample_model"
"""The name under which a policy judges that a server asks the model; the call's origin is the server's."""
MOST_TOKENS = 4096
"""The most tokens of one message that a server may ask for."""
MOST_REQUESTS = 20
"""The most messages that the servers of a session may ask the model for."""
_YES, _NO = ("y", "yes"), ("n", "no")


class ServerRequests:
    """Answers the requests of a session's servers.

    A person is asked if there is one. The model is asked as a call of the tool `sample_model`: with the session's
    policy, approver and journal, at most `MOST_REQUESTS` times, for at most `MOST_TOKENS` tokens each.
    """

    def __init__(self, pipeline: Pipeline[Any], permissions: Permissions) -> None:
        self._pipeline = pipeline
        self._permissions = permissions
        self._policy: Policy = permissions.policy
        self._clear_line: Callable[[], None] = _do_nothing
        self._count = 0

    def attach(self, policy: Policy, clear_line: Callable[[], None]) -> None:
        """Use the policy of the session, with its grants; `clear_line` is called before a question is shown."""
        self._policy, self._clear_line = policy, clear_line

    @property
    def answers(self) -> ClientAnswers:
        """What servers may ask for: nothing that nobody here could answer or permit."""
        permissions = self._permissions
        can_permit = not isinstance(permissions.approver, DenyAll) or permissions.policy.rules
        # A server may ask anything; a model that can't do without its tools was trained on nothing else.
        capabilities = self._pipeline.model.capabilities
        can_write = capabilities.tools is None and capabilities.tools_optional
        return ClientAnswers(
            elicit=self.elicit if isinstance(permissions.approver, TerminalApprover) else None,
            sample=self.sample if can_permit and can_write else None,
        )

    async def elicit(self, request: ElicitationRequest) -> Mapping[str, Any] | Literal["decline", "cancel"]:
        """Ask the person at the terminal for each field, and whether to send the answers."""
        approver = self._permissions.approver
        assert isinstance(approver, TerminalApprover)
        async with approver.take_turn():
            self._clear_line()
            return await _Form(approver, request).fill_in()

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        """Ask the model, if the policy and the person permit it. Raises `ToolFailed` with the reason if not."""
        if self._count >= MOST_REQUESTS:
            raise ToolFailed(f"this session has answered {MOST_REQUESTS} sampling requests, and answers no more")
        self._count += 1
        answers: list[SamplingAnswer] = []
        max_tokens = min(request.max_tokens, MOST_TOKENS)

        async def sample_model(server: str, max_tokens: int) -> str:  # noqa: ARG001 - the server is shown
            answers.append(await self._ask_model(replace(request, max_tokens=max_tokens)))
            return answers[-1].text

        def describe(_arguments: Mapping[str, Any]) -> Intent:
            return Intent((Effect("net", self._pipeline.model.name),), _render(request.conversation))

        tool = Tool.from_callable(
            sample_model,
            name=SAMPLING_TOOL,
            description="Let an MCP server ask the model.",
            origin=request.origin,
            intent=describe,
        )
        arguments = json.dumps({"server": request.server, "max_tokens": max_tokens})
        async with ToolRegistry([tool]).open() as bound:
            approver = _ClearedApprover(self._permissions.approver, self._clear_line)
            executor = Executor(bound, policy=self._policy, approver=approver, journal=self._permissions.journal)
            result = await executor.run(ToolCall(f"sampling_{self._count}", SAMPLING_TOOL, arguments), CallScope())
        assert isinstance(result, ToolResult), "an executor with on_ask='deny' never pauses"
        if result.is_error or not answers:
            raise ToolFailed(result.text.removeprefix("error: "))
        return answers[0]

    async def _ask_model(self, request: SamplingRequest) -> SamplingAnswer:
        """Ask the session's model, without its tools or its system text. Raises what the model raises."""
        from ferrule.agent.pipeline import model

        known = self._pipeline.model.capabilities.settings
        wanted = {"max_tokens": request.max_tokens, "temperature": request.temperature, "stop": request.stop}
        given: dict[str, Any] = {name: value for name, value in wanted.items() if value and name in known}
        run = await model(self._pipeline.model).chat(request.conversation).with_(**given).run()
        message = run.conversation.messages[-1]
        stop: Literal["length", "turn"] = "length" if run.stopped == "length" else "turn"
        return SamplingAnswer(message.text, self._pipeline.model.name, stop)


class _ClearedApprover:
    """Asks another approver on a line of its own; the servers' requests are not among the calls that were shown."""

    def __init__(self, approver: Approver, clear_line: Callable[[], None]) -> None:
        self._approver = approver
        self._clear_line = clear_line

    @property
    def confirms_edits(self) -> bool:
        return confirms_edits(self._approver)

    async def decide(self, request: ApprovalRequest) -> Decision:
        self._clear_line()
        return await self._approver.decide(request)


class _Form:
    """Asks for the fields of one question, on a terminal."""

    def __init__(self, terminal: TerminalApprover, request: ElicitationRequest) -> None:
        self._terminal = terminal
        self._request = request

    async def fill_in(self) -> Mapping[str, Any] | Literal["decline", "cancel"]:
        """Return the answers; the end of the input, or /cancel, gives none."""
        request, say = self._request, self._terminal.say
        say(f"▸ the MCP server {escape_line(request.server)} asks", *_indent(request.message))
        if request.url is not None:
            say(*_indent(f"open this address, if you trust the server: {request.url}"))
            return await self._confirm("done, or will you do it?", {})
        fields: Mapping[str, Any] = request.schema.get("properties", {})
        if fields:
            say("  (/no declines, /cancel gives no answer)")
        answers: dict[str, Any] = {}
        for name, schema in fields.items():
            value = await self._ask_field(name, schema, name in request.schema.get("required", ()))
            if isinstance(value, _Refused):
                return value.action
            if value is not None:
                answers[name] = value
        return await self._confirm("send this answer?", answers)

    async def _confirm(
        self, question: str, answers: Mapping[str, Any]
    ) -> Mapping[str, Any] | Literal["decline", "cancel"]:
        while True:
            line = await self._terminal.ask(f"  {question} [y]es, [n]o:")
            word = (line or "").strip().casefold()
            if line is None or word == "/cancel":
                return "cancel"
            if word in _YES:
                return answers
            if word in (*_NO, "/no"):
                return "decline"

    async def _ask_field(self, name: str, schema: Mapping[str, Any], is_required: bool) -> Any:
        """Ask for one value until it fits the schema; None if it is left out."""
        choices = ", ".join(title for _, title in _list_choices(schema))
        kind = f"one of {choices}" if choices else schema.get("format") or schema.get("type", "text")
        if schema.get("type") == "array":
            kind = f"some of {choices}, separated by commas"
        default = schema.get("default")
        notes = [
            kind,
            "required" if is_required and default is None else f"Enter for {_describe_default(default, schema)}",
        ]
        about = schema.get("description") or schema.get("title") or ""
        for line in _indent(f"{name} ({'; '.join(notes)})  {about}".rstrip()):
            self._terminal.say(line)
        while True:
            typed = await self._terminal.ask("  >")
            text = (typed or "").strip()
            if typed is None or text == "/cancel":
                return _Refused("cancel")
            if text == "/no":
                return _Refused("decline")
            if not text and (default is not None or not is_required):
                return default
            value = _parse_value(text, schema)
            problem = _find_problem(value, schema)
            if not problem:
                return value
            self._terminal.say(*_indent(problem))


class _Refused:
    """The person gave no answer to a field."""

    def __init__(self, action: Literal["decline", "cancel"]) -> None:
        self.action = action


def _parse_value(text: str, schema: Mapping[str, Any]) -> Any:
    """Convert what a person typed to the type of a field, as far as possible."""
    kind = schema.get("type")
    if kind == "boolean":
        return True if text.casefold() in (*_YES, "true") else False if text.casefold() in (*_NO, "false") else text
    values = {name.casefold(): value for value, title in _list_choices(schema) for name in (title, str(value))}
    if kind == "array":
        return [values.get(word.casefold(), word) for word in map(str.strip, text.split(",")) if word]
    if values:
        return values.get(text.casefold(), text)
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
    return text


def _find_problem(value: Any, schema: Mapping[str, Any]) -> str:
    from jsonschema import SchemaError

    from ferrule.tools.schema_validator import SchemaValidator

    try:
        errors = SchemaValidator(schema).errors(value)
    except SchemaError:
        return ""  # the server's own mistake; it checks the answer itself
    if errors:
        return str(errors[0].message)
    is_right, example = _FORMATS.get(schema.get("format", ""), (None, ""))
    return "" if is_right is None or is_right(value) else f"{value!r} is no {schema['format']}; write it as {example}"


def _is_date(value: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None and _is_time(f"{value}T00:00:00Z")


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_uri(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+", value) is not None


_FORMATS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "email": (lambda value: re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None, "ada@example.com"),
    "uri": (_is_uri, "https://example.com"),
    "date": (_is_date, "2026-11-28"),
    "date-time": (_is_time, "2026-11-28T09:00:00Z"),
}


def _list_choices(schema: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """The values that a person may choose from, each with its title. The protocol knows no others than texts."""
    if schema.get("type") == "array":
        schema = schema.get("items", {})
    if values := schema.get("enum", ()):
        titles = schema.get("enumNames") or values
        pairs = zip_longest(values, titles[: len(values)], fillvalue="")
        return [(value, str(title or value)) for value, title in pairs if isinstance(value, str)]
    named = schema.get("oneOf") or schema.get("anyOf") or ()
    return [(one["const"], str(one.get("title", one["const"]))) for one in named if isinstance(one.get("const"), str)]


def _describe_default(default: Any, schema: Mapping[str, Any]) -> str:
    titles = dict(_list_choices(schema))
    if isinstance(default, list):
        return ", ".join(titles.get(str(one), str(one)) for one in default) or "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default is None else titles.get(str(default), str(default))


def _render(conversation: Conversation) -> str:
    return "\n".join(f"{message.role}: {message.text}" for message in conversation.messages)


def _indent(text: str) -> list[str]:
    return [f"  {escape_line(line)}" for line in text.splitlines()]


def _do_nothing() -> None:
    """Nothing is to be cleared before a session is attached."""
