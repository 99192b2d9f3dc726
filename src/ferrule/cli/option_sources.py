"""Where the values of options are from: the command line, the environment, or the user's configuration file.

The file is `$FERRULE_CONFIG`, or `config.toml` in the user's configuration folder. A project's folder is never searched
for one: whoever writes a project's files can't choose a person's model, servers or policy.

A resumed conversation has a source of its own for the model. A default that the command line contradicts is dropped;
two options of the command line that contradict each other are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._util.user_folders import find_config_folder

if TYPE_CHECKING:
    import typer

    from ferrule.cli.session_options import SessionOptions
    from ferrule.cli.settings import UserSettings

_FILE_VARIABLE = "FERRULE_CONFIG"
_CONFIGURED = ("ask", "chat", "code", "analyze", "history")
"""The commands that have defaults in the file."""
_ONLY = {"history": ("store",), "analyze": ("model", "base_url", "model_options", "fallback", "policy", "journal")}
"""The defaults of commands that don't have them all. An analysis has settings of its own, and tools for its plans."""

_CONTRADICTIONS = {"no_tools": ("tools", "plugins", "mcp", "trust"), "resume": ("system",)}
_PRECEDENCE = ("DEFAULT", "DEFAULT_MAP", "ENVIRONMENT", "CONVERSATION", "COMMANDLINE")
"""The names of click's sources, and that of a resumed conversation's model. `DEFAULT_MAP` is the configuration file."""
_WITHOUT_ADDRESS = ("embedded", "echo", "local")
_COMMAND_LINE = _PRECEDENCE.index("COMMANDLINE")

ADDRESS_VARIABLE = "FERRULE_BASE_URL"


def resolve_options(options: SessionOptions, context: typer.Context, folder: Path | None = None) -> SessionOptions:
    """Resolve the conversation to resume and its model, and drop the defaults that other options contradict.

    `--continue` takes the last conversation about `folder`, if one is given.

    An address, a mode and options go with the model beside which they are set. If a source that takes precedence names
    another model, the mode and the options are dropped, and so is the address unless `is_address_for` accepts it: the
    key of one provider must not be sent to the address of another. Raises `SettingsError` for two contradicting options
    of the command line and for a model that lacks an address, and `ConversationError` for a conversation that can't be
    resumed.
    """
    if options.continue_last:
        options = _find_last(options, folder)
    dropped = _list_contradicted(options, context)
    options, rank = _choose_model(options, context)
    for name in ("mode", "model_options"):
        if 0 < _rank(context, name) < rank and options.model != _find_model_beside(context, name):
            dropped.append(name)
    if 0 < _rank(context, "base_url") < rank and not is_address_for(
        options.model, _find_model_beside(context, "base_url")
    ):
        _check_without_address(options, context)
        dropped.append("base_url")
    else:
        _check_address(options, context)
    defaults = type(options)()
    return replace(options, **{name: getattr(defaults, name) for name in dropped})


def _find_last(options: SessionOptions, folder: Path | None) -> SessionOptions:
    """Set `resume` to the conversation that was saved last, of those about `folder` if one is given."""
    from ferrule.errors import SettingsError
    from ferrule.session.persistence import find_store_path
    from ferrule.store import Store

    if options.resume is not None:
        raise SettingsError("--continue and --resume can't be used together")
    path = find_store_path(options.store)
    if path.exists():
        with Store(path, create=False) as store:
            if last := store.list(1, folder=None if folder is None else str(folder)):
                return replace(options, resume=last[0].id)
    if folder is not None:
        raise SettingsError(f"--continue: no conversation about {folder} is saved in {path}")
    raise SettingsError(f"--continue: no conversation is saved in {path}; --keep saves one")


def _list_contradicted(options: SessionOptions, context: typer.Context) -> list[str]:
    from ferrule.errors import SettingsError

    dropped = []
    for name, others in _CONTRADICTIONS.items():
        for other in others if getattr(options, name) else ():
            if _rank(context, other) == _COMMAND_LINE:
                shown = "continue" if name == "resume" and options.continue_last else name.replace("_", "-")
                raise SettingsError(f"--{shown} and --{other} can't be used together")
            dropped.append(other)
    return dropped


def _choose_model(options: SessionOptions, context: typer.Context) -> tuple[SessionOptions, int]:
    """Choose the model: the command line's, a resumed conversation's own, or the default; returns its rank, too."""
    from ferrule.session.persistence import find_store_path

    rank = _rank(context, "model")
    if options.resume is None or rank == _COMMAND_LINE:
        return options, rank
    from ferrule.session.terminal.output import print_notice
    from ferrule.store import Store

    with Store(find_store_path(options.store), create=False) as store:
        model = store.find_model(options.resume)
    if model is None:
        return options, rank
    if model != options.model:
        print_notice(f"{model} answers, the model of the conversation; --model names another")
    return replace(options, model=model), _PRECEDENCE.index("CONVERSATION")


def is_address_for(model: str, beside: str | None) -> bool:
    """Whether an address of the environment or the file may be used for a model that is named elsewhere.

    It may for the provider of the model `beside` it. With none, it may for servers that people run
    themselves, which have no key of a known service that the address could get.
    """
    from ferrule.models.providers import PROVIDERS

    provider = model.partition(":")[0]
    if beside is not None:
        return ":" in beside and provider == beside.partition(":")[0]
    found = PROVIDERS.get(provider)
    return found is not None and not found.needs_key and found.extra == "hosted"


def _check_without_address(options: SessionOptions, context: typer.Context) -> None:
    """Raise `SettingsError` if the model can't be asked without the address that was left out."""
    from ferrule.errors import SettingsError
    from ferrule.models.providers import PROVIDERS

    provider = options.model.partition(":")[0]
    if provider in ("azure", "compatible") and not PROVIDERS[provider].address and options.record is None:
        beside = _find_model_beside(context, "base_url")
        reason = f"it is the address of {beside}" if beside else "no model is named beside it"
        raise SettingsError(
            f"{options.model}: {_describe_source(context)} was left out, since {reason}; "
            "give this model's address by --base-url http://…/v1"
        )


def _check_address(options: SessionOptions, context: typer.Context) -> None:
    """Raise `SettingsError`, naming the source, for an address that can't be used."""
    from ferrule.errors import SettingsError

    if options.base_url is None:
        return
    source = _describe_source(context)
    if options.model.partition(":")[0] in _WITHOUT_ADDRESS:
        if _rank(context, "base_url") == _COMMAND_LINE:
            raise SettingsError(f"{source} is for a provider's model; {options.model} has no address")
        raise SettingsError(
            f"{source} is for a provider's model, and {options.model} has no address; name the model by --model or "
            "FERRULE_MODEL, or unset the address"
        )
    if not options.base_url.startswith(("http://", "https://")):
        raise SettingsError(f"{source} {options.base_url}: an address must begin with http:// or https://")


def _describe_source(context: typer.Context) -> str:
    """Name the option, the variable or the file that has the address."""
    rank = _rank(context, "base_url")
    if rank == _COMMAND_LINE:
        return "--base-url"
    return ADDRESS_VARIABLE if rank == _PRECEDENCE.index("ENVIRONMENT") else f"base_url in {find_config_file()}"


def _find_model_beside(context: typer.Context, name: str) -> str | None:
    """Find the default model for which an option's value is meant: of the same source, or else of the file."""
    is_environment = _rank(context, name) == _PRECEDENCE.index("ENVIRONMENT")
    named = os.environ.get("FERRULE_MODEL") if is_environment else None
    return named or (context.default_map or {}).get("model")


def _rank(context: typer.Context, name: str) -> int:
    source = context.get_parameter_source(name)
    return _PRECEDENCE.index(source.name) if source is not None and source.name in _PRECEDENCE else 0


def find_config_file() -> Path | None:
    """The user's configuration file, if there is one. One that `FERRULE_CONFIG` names must exist."""
    named = os.environ.get(_FILE_VARIABLE, "")
    path = Path(named) if named else find_config_folder() / "config.toml"
    return path if named or path.is_file() else None


def read_defaults(command: str | None) -> dict[str, Mapping[str, Any]]:
    """Read the defaults of a command's options, by command, as click takes them; the file is read only if it has some.

    Raises `SettingsError` for unknown keys and invalid values, and `OSError`.
    """
    path = find_config_file() if command in _CONFIGURED else None
    if command is None or path is None:
        return {}
    from ferrule.cli.settings import UserSettings, read_settings
    from ferrule.models.prices import VARIABLE as PRICES
    from ferrule.sandbox.own_files import protect_own_file

    settings = read_settings(UserSettings, path, ())
    protect_own_file(path, "the user's configuration")
    folder = path.expanduser().absolute().parent
    if settings.prices is not None:
        os.environ.setdefault(PRICES, _resolve(settings.prices, folder))
    defaults = _list_defaults(settings, folder)
    kept = _ONLY.get(command)
    if kept is not None:
        defaults = {name: value for name, value in defaults.items() if name in kept}
    return {command: defaults}


def read_analysis_defaults() -> dict[str, Any]:
    """Read the table `[analyze]` of the file: settings of an analysis. Raises `SettingsError` and `OSError`."""
    from ferrule.cli.settings import UserSettings, read_settings

    path = find_config_file()
    return {} if path is None else read_settings(UserSettings, path, ()).analyze or {}


def _list_defaults(settings: UserSettings, folder: Path) -> dict[str, Any]:
    """List what is set, with paths relative to the file's folder."""
    from ferrule.cli.tool_sources import CONTAINED

    found = settings.model_dump(exclude_none=True, exclude={"prices", "analyze"})
    for name in ("policy", "journal", "store"):
        if name in found:
            found[name] = _resolve(found[name], folder)
    if "tools" in found:
        found["tools"] = [name if name in CONTAINED else _resolve(name, folder) for name in found["tools"]]
    if "model_options" in found:  # as the command line has them
        found["model_options"] = [f"{name}={json.dumps(value)}" for name, value in found["model_options"].items()]
    return found


def _resolve(name: str, folder: Path) -> str:
    return str(folder / Path(name).expanduser())
