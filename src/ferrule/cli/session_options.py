"""The options that `ask` and `chat` share, and the session that they describe."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ferrule.cli.completion import complete_mode, complete_model
from ferrule.cli.options import (
    APPROVAL_HINT,
    AsJson,
    JournalFile,
    ModelOptions,
    Plugins,
    PolicyFile,
    ServerEnvironment,
    StoreFile,
    ToolFolders,
    Trust,
    Yes,
    read_server_environment,
)

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline
    from ferrule.cli.attachments import Attachment
    from ferrule.mcp.client import MCPServer
    from ferrule.session.approvals import Permissions
    from ferrule.session.renderer import Renderer
    from ferrule.session.servers import SessionServers
    from ferrule.session.session import SessionRunner
    from ferrule.tools.registry import ToolRegistry

PROVIDERS = (
    "openai, openai-responses, anthropic, google, azure, bedrock, vertex, vllm, sglang, llamacpp, ollama, lmstudio,"
    " groq, openrouter, deepseek, mistral, together, fireworks, xai, cerebras, huggingface, compatible"
)

_SMALL_WEIGHTS = 32 * 2**20
"""Bytes; a model with 25 million weights, twice that, answers three times as fast with two threads as with one."""


def make_model_option(about: str, *, shows_default: bool = True) -> Any:
    """The option `--model`; `about` is its help."""
    return typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        envvar="FERRULE_MODEL",
        autocompletion=complete_model,
        show_default=shows_default,
        help=about,
    )


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Each field is an option of `ask` and `chat`."""

    model: Annotated[
        str,
        make_model_option(
            "The model: embedded, local:FOLDER, local:ORG/NAME of Hugging Face's hub, echo, or PROVIDER:MODEL with one"
            f" of {PROVIDERS}; see `models`."
        ),
    ] = "embedded"
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            "-s",
            metavar="TEXT",
            envvar="FERRULE_SYSTEM",
            help="What the model is told before the conversation.",
        ),
    ] = None
    attachments: Annotated[
        list[str] | None,
        typer.Option(
            "--attachment",
            "-a",
            metavar="FILE",
            help="Send a text, image, PDF or audio file with the first question; - is standard input. May be repeated.",
        ),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            metavar="FILE|JSON",
            help="A JSON Schema: the answer is checked against it, and printed as JSON without anything else.",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            envvar="FERRULE_BASE_URL",
            help="The address of the provider's API; its key comes from the environment.",
        ),
    ] = None
    model_options: ModelOptions = None
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            envvar="FERRULE_MODE",
            autocompletion=complete_mode,
            help="How calls are written: auto, api, or the name of a notation of `dialects`.",
        ),
    ] = "auto"
    fallback: Annotated[
        str | None,
        typer.Option(
            "--fallback",
            metavar="MODEL",
            envvar="FERRULE_FALLBACK",
            autocompletion=complete_model,
            help="The model to ask if the first one fails.",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Record the model's answers in this file; what is in it is answered from there, without the model.",
        ),
    ] = None
    tools: ToolFolders = None
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Offer no tool, not even the calculator.")] = False
    no_calculator: Annotated[
        bool, typer.Option("--no-calculator", help="Offer only the tools that are named, not the calculator.")
    ] = False
    plugins: Plugins = False
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--mcp",
            metavar="SERVER",
            help="Also offer the tools of an MCP server: the command that starts it, in quotes, or its address. "
            "Repeatable.",
        ),
    ] = None
    mcp_timeout: Annotated[
        float,
        typer.Option("--mcp-timeout", min=0.1, metavar="SECONDS", help="How long each --mcp server may take to start."),
    ] = 30.0
    env: ServerEnvironment = None
    trust: Trust = False
    as_json: AsJson = False
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0,
            envvar="FERRULE_TEMPERATURE",
            help="0 always takes the likeliest token; the default is the provider's.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, envvar="FERRULE_SEED", help="Makes sampling repeatable.")] = None
    max_tokens: Annotated[
        int | None, typer.Option(min=1, envvar="FERRULE_MAX_TOKENS", help="The most tokens of one message.")
    ] = None
    yes: Yes = False
    policy: PolicyFile = None
    journal: JournalFile = None
    store: StoreFile = None
    keep: Annotated[bool, typer.Option("--keep", help="Save the conversation, see `ferrule history`.")] = False
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Continue a saved conversation.")] = None
    continue_last: Annotated[
        bool, typer.Option("--continue", "-c", help="Continue the conversation that was saved last.")
    ] = False
    cost: Annotated[
        bool, typer.Option("--cost", envvar="FERRULE_COST", help="Show the tokens, seconds and price of each answer.")
    ] = False


def add_session_options(
    command: Callable[..., None],
    without: Collection[str] = (),
    in_folder: bool = False,
    described: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """Add an option to a command for each field of `SessionOptions`; it gets them together as `options`.

    So it does for each other parameter whose type is a dataclass of options. Fields of `without` keep their defaults;
    those of `described` have these annotations. With `in_folder`, `--continue` takes a conversation of the current
    folder.
    """
    shared = [
        one.replace(annotation=(described or {}).get(one.name, one.annotation))
        for one in _list_options(SessionOptions)
        if one.name not in without
    ]
    own, groups = _expand_groups(command)

    def run(context: typer.Context, **given: Any) -> None:
        from ferrule.cli.option_sources import resolve_options

        options = SessionOptions(**{one.name: given.pop(one.name) for one in shared})
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given, options=resolve_options(options, context, Path.cwd() if in_folder else None))

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *sorted([*shared, *own], key=lambda one: (one.kind, one not in shared))]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _expand_groups(command: Callable[..., None]) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """A command's own parameters, with the fields of each dataclass in its place; and the dataclasses by parameter."""
    parameters = inspect.signature(command, eval_str=True).parameters
    own = [one for one in parameters.values() if one.name != "options"]
    groups = {one.name: one.annotation for one in own if is_dataclass(one.annotation)}
    expanded = [_list_options(groups[one.name]) if one.name in groups else [one] for one in own]
    return [one for each in expanded for one in each], groups


def _list_options(kind: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters of a command."""
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(one.name, keyword, default=one.default, annotation=hints[one.name]) for one in fields(kind)
    ]


def collect_session_tools(options: SessionOptions) -> ToolRegistry:
    """The tools that the options offer, without those of servers. Raises as `collect_tools` does."""
    from ferrule.cli.tool_sources import collect_tools
    from ferrule.tools.registry import ToolRegistry

    if options.no_tools:
        return ToolRegistry()
    return collect_tools(options.tools or [], options.plugins, with_calculator=not options.no_calculator)


@contextmanager
def open_session(options: SessionOptions, require_servers: bool = False) -> Iterator[SessionRunner]:
    """Open the session that the options describe; `require_servers` is whether each server must be reached.

    Raises `FerruleError` and `OSError` for options that can't be used.
    """
    from ferrule._util.background import run_synchronously
    from ferrule.agent.model_checks import check_tools
    from ferrule.agent.runner import select_mode
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.approvals import open_permissions
    from ferrule.session.persistence import StoreOptions, open_autosave
    from ferrule.session.session import Session, SessionRunner

    attachments: tuple[Attachment, ...] = ()
    if options.attachments:
        from ferrule.cli.attachments import read_attachments

        attachments = read_attachments(options.attachments)
    registry = collect_session_tools(options)
    pipeline = make_pipeline(options)
    renderer = make_renderer(options)
    if options.cost:
        from ferrule.session.cost import CostRenderer

        costs = CostRenderer(renderer, options.as_json)
        renderer, pipeline = costs, pipeline.hook(costs)
    with (
        route_tool_output(),
        open_permissions(options.yes, options.policy, options.journal, APPROVAL_HINT) as permissions,
        open_autosave(StoreOptions(options.store, options.keep, options.resume, options.model)) as autosave,
        _open_servers(options, pipeline, permissions, require_servers) as servers,
    ):
        try:
            granted = permissions.trust(*servers.origins) if servers is not None and options.trust else permissions
            session = Session(
                pipeline, registry, permissions=granted, renderer=renderer, autosave=autosave, servers=servers,
                workspace=Path.cwd(), attachments=attachments,
            )  # fmt: skip
            run_synchronously(session.refresh_tools())
            asked, _ = select_mode(pipeline.model, options.mode)
            check_tools(asked, session.registry.names)
            session.check_resumed()
            yield SessionRunner(session)
        finally:
            run_synchronously(pipeline.model.aclose())


def make_pipeline(options: SessionOptions, facts: Mapping[str, str] | None = None) -> Pipeline:
    """Make a pipeline for the model; `facts` are those of its recording.

    Raises `ModelError` for an unknown model, `DialectError` for an unknown mode.
    """
    import logging

    from ferrule.agent.pipeline import model
    from ferrule.cli.standard_input import is_utf_8
    from ferrule.engines import limit_blas_threads
    from ferrule.errors import SettingsError
    from ferrule.session.terminal.output import NoticeHandler

    logger = logging.getLogger("ferrule.models")
    if not any(isinstance(handler, NoticeHandler) for handler in logger.handlers):
        logger.addHandler(NoticeHandler(logging.WARNING))
    name, base_url = options.model, options.base_url
    if name.startswith("local:"):
        # What it warns of while it runs a model is for those who program with it.
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if base_url is None and name.startswith("compatible:") and options.record is None:
        raise SettingsError(f"{name}: give the server's address by --base-url http://…/v1")
    given: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    if options.model_options:
        from ferrule.cli.settings import read_model_options

        given |= read_model_options(options.model_options)
    if options.record is not None:
        given |= {"record": options.record, "facts": facts}
    sampling = {"temperature": options.temperature, "seed": options.seed, "max_tokens": options.max_tokens}
    changed: dict[str, Any] = {setting: value for setting, value in sampling.items() if value is not None}
    gains_by_threads = name.startswith("local:") and not _is_small(name)
    with nullcontext() if gains_by_threads else limit_blas_threads():
        pipeline = model(name, fallback=options.fallback, **given).using(mode=options.mode)
    if options.system:
        if not is_utf_8(options.system):
            raise SettingsError("--system: not UTF-8 text")
        pipeline = pipeline.system(options.system)
    if options.schema is not None:
        pipeline = pipeline.parse_as(read_schema(options.schema))
    return pipeline.with_(**changed) if changed else pipeline


def _is_small(name: str) -> bool:
    """Whether a local model is so small that the threads of numpy and torch would only wait for each other."""
    weights = Path(name.removeprefix("local:")).expanduser() / "model.safetensors"
    return weights.is_file() and weights.stat().st_size < _SMALL_WEIGHTS


def make_renderer(options: SessionOptions, margin: str = "") -> Renderer:
    """Make what shows the events: JSON lines, a typed answer alone, or text for people, on a terminal with a margin."""
    if options.as_json:
        from ferrule.session.renderer import JsonRenderer

        return JsonRenderer()
    if options.schema is not None:
        from ferrule.session.output_renderer import OutputRenderer

        return OutputRenderer()
    from ferrule.session.terminal.renderer import OutputScreen, TextRenderer

    return TextRenderer(OutputScreen(margin))


def read_schema(given: str) -> dict[str, Any]:
    """Read a JSON Schema: the text itself if it is an object, or else the file of that name.

    Raises `SettingsError` for what is not a JSON object, and `OSError`.
    """
    import json

    from ferrule.errors import SettingsError

    is_inline = given.lstrip().startswith("{")
    try:
        schema = json.loads(given if is_inline else Path(given).read_bytes())
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--schema{'' if is_inline else f' {given}'} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SettingsError(f"--schema {given}: a JSON Schema is an object")
    return schema


def make_servers(options: SessionOptions) -> list[MCPServer]:
    """Make the servers of `--mcp` for runs that open them. Raises `SettingsError`."""
    environment = read_server_environment(options.env, options.mcp or ())
    if not options.mcp:
        return []
    from ferrule.mcp.client import MCPServer
    from ferrule.mcp.target import is_address

    return [
        MCPServer(one, start_timeout=options.mcp_timeout, env=None if is_address(one) else environment)
        for one in options.mcp
    ]


def _open_servers(
    options: SessionOptions,
    pipeline: Pipeline,
    permissions: Permissions,
    require_all: bool,
) -> AbstractContextManager[SessionServers | None]:
    from ferrule.errors import SettingsError

    environment = read_server_environment(options.env, options.mcp or ())
    if not options.mcp:
        if options.trust:
            raise SettingsError("--trust is for the servers of --mcp, but there are none")
        return nullcontext()
    from ferrule.session.server_requests import ServerRequests
    from ferrule.session.servers import open_servers

    requests = ServerRequests(pipeline, permissions)
    return open_servers(options.mcp, options.mcp_timeout, requests, require_all, environment)
