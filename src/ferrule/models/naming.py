"""Models by name: `provider:model`, `local:folder`, `embedded`, `echo`, those of plugins, and recordings of any."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.errors import ModelError, PluginError, SettingsError

if TYPE_CHECKING:
    from ferrule.models.hosted import HostedModel
    from ferrule.models.protocol import Model
    from ferrule.models.providers import Provider
    from ferrule.models.recording.model import RecordedModel, RecordMode


def find_model(given: str | Model, **options: Any) -> Model:
    """The model with that name, or the object itself, which takes no options.

    Raises `SettingsError` for anything else, and what `get_model` raises.
    """
    if isinstance(given, str):
        return get_model(given, **options)
    if hasattr(given, "chat"):
        raise SettingsError("model() takes a name or a Model object, not a pipeline; give its model, pipeline.model")
    if isinstance(given, type) or not hasattr(given, "stream"):
        raise SettingsError(f"model() takes a name such as 'openai:gpt-5' or a Model object, not {given!r}")
    if options:
        raise SettingsError(f"{next(iter(options))}=… is for a model given by name, not for the object {given.name!r}")
    return given


def get_model(name: str, **options: Any) -> Model:
    """The model with that name; `options` (`api_key`, `base_url`, `dialect`, …) are passed to its constructor.

    With `record=FILE`, its answers are recorded in that file, and replayed from there: see `record`.
    Any other name may be that of an installed package's model, in the group `ferrule.models`. Raises `ModelError` for
    an unknown name, a missing key or a missing package, and `PluginError`.
    """
    path = options.pop("record", None)
    if path is not None:
        return record(path, name, **options)
    provider, _, rest = name.partition(":")
    try:
        if name == "embedded":
            return _load_embedded_model(**options)
        if name == "echo":
            from ferrule.models.scripted import EchoModel

            return EchoModel(**options)
        found = _get_provider_model(provider, rest, options) if rest else None
        found = found or _get_plugin_model(provider, rest, options)
        if found is not None:
            return found
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "takes no arguments" not in str(error):
            raise
        from ferrule.models.protocol import ModelSettings

        is_setting = any(f"'{option}'" in str(error) for option in options if option in ModelSettings.model_fields)
        advice = "; sampling settings are given to with_(…)" if is_setting else ""
        raise SettingsError(f"model({name!r}): {str(error).partition(') ')[2] or error}{advice}") from error
    from ferrule.models.suggestions import describe_unknown_model

    raise ModelError(describe_unknown_model(name))


def _load_embedded_model(**options: Any) -> Model:
    from pkgutil import resolve_name

    from ferrule.models.checkpoints.loading import EMBEDDED_MODEL

    made: Model = resolve_name(EMBEDDED_MODEL)(**options)
    return made


def record(
    path: str | Path,
    model: str | Model | None = None,
    *,
    mode: RecordMode | None = None,
    facts: Mapping[str, str] | None = None,
    **options: Any,
) -> RecordedModel:
    """A model whose answers are recorded in `path`, and replayed from there.

    `model` is a name or a `Model`; a name's `options` (`api_key`, …) are those of `get_model`, and the model is created
    when it is first asked, so that a replay needs neither key nor package. Without one, the file must hold what a
    single model answered, which is replayed. `mode` is that of `FERRULE_RECORD` if left out, or `once`.

    `facts` are texts that differ between machines, by name, such as `{"workspace": "/home/me/project"}`: the file has
    their names, and a replay its own texts.

    Raises `SettingsError` for a file that isn't a recording or an unknown mode, and `ModelError` for a model that is
    neither recorded nor can be created.
    """
    from ferrule.models.recording.model import RecordedModel, choose_mode

    chosen = choose_mode(mode)
    if model is None:
        if mode not in (None, "replay"):
            raise SettingsError(f'record("{path}", mode="{mode}") needs the model to ask: record("{path}", "openai:…")')
        return RecordedModel(Path(path), None, "replay", facts=facts)
    key = model if isinstance(model, str) else find_model(model).name
    keys = {name: value for name, value in options.items() if isinstance(value, str) and "key" in name}
    return RecordedModel(Path(path), key, chosen, create=partial(find_model, model, **options), facts=facts, keys=keys)


def _get_provider_model(provider: str, name: str, options: dict[str, Any]) -> Model | None:
    if provider == "local":
        from ferrule.models.checkpoints.loading import load_local_model

        return load_local_model(name, **options)
    from ferrule.models.providers import PROVIDERS

    return make_hosted_model(provider, name, **options) if provider in PROVIDERS else None


def _get_plugin_model(provider: str, name: str, options: dict[str, Any]) -> Model | None:
    """A model of an installed package, created with the part after the colon. Raises `PluginError`."""
    from ferrule.tools.plugins import find_plugin

    plugin = find_plugin("models", provider)
    if plugin is None:
        return None
    maker = plugin.load()
    if not callable(maker):
        raise PluginError(
            f"{plugin} is not callable: {plugin.target} must create a model from the part after the colon"
        )
    made: Model = maker(name, **options)
    return made


def make_hosted_model(provider: str | Provider, name: str, **options: Any) -> HostedModel:
    """The model `name` of a provider: `make_hosted_model("groq", "openai/gpt-oss-120b")`.

    `options` (`api_key`, `base_url`, …) are passed to the model's class. Raises `ModelError` for an unknown provider,
    and for a missing key or address.
    """
    from importlib import import_module

    from ferrule.models.providers import find_provider

    found = find_provider(provider)
    module, _, class_name = found.find_class(name).partition(":")
    kind = getattr(import_module(module), class_name)
    known = kind.__init__.__kwdefaults__
    if unknown := sorted(set(options) - set(known)):
        raise SettingsError(
            f'model("{found.name}:{name}") has no option {unknown[0]!r}; expected one of {", ".join(known)}. '
            "Sampling settings are given to with_(…)"
        )
    made: HostedModel = kind(name, found, **options)
    return made
