"""Models by name: `provider:model`, `local:folder`, `embedded`, `echo`, and those of plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.errors import ModelError, PluginError, SettingsError

if TYPE_CHECKING:
    from ferrule.models.compatible import Provider
    from ferrule.models.openai_chat import OpenAIChat
    from ferrule.models.openai_responses import OpenAIResponses
    from ferrule.models.protocol import Model


def model_named(name: str, **options: Any) -> Model:
    """The model of that name; `options` (`api_key`, `base_url`, `dialect`, …) go to its maker.

    A name that ferrule doesn't know may be that of an installed package's model, in the group `ferrule.models`. Raises
    `ModelError` for a name that there isn't, a key that is missing or a package that isn't installed, and
    `PluginError`.
    """
    provider, _, rest = name.partition(":")
    try:
        if name == "embedded":
            from ferrule.models.embedded import embedded_model

            return embedded_model(**options)
        if name == "echo":
            from ferrule.models.echo import EchoModel

            return EchoModel(**options)
        found = _of_provider(provider, rest, options) if rest else None
        found = found or _of_plugin(provider, rest, options)
        if found is not None:
            return found
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "takes no arguments" not in str(error):
            raise
        raise SettingsError(f"model({name!r}): {str(error).partition(') ')[2] or error}") from error
    raise ModelError(f"there is no model {name!r}; {_known()}")


def _of_provider(provider: str, name: str, options: dict[str, Any]) -> Model | None:
    if provider == "local":
        from ferrule.models.embedded import local_model

        return local_model(Path(name), **options)
    if provider == "anthropic":
        from ferrule.models.anthropic import AnthropicModel

        return AnthropicModel(name, **options)
    if provider == "google":
        from ferrule.models.google import GoogleModel

        return GoogleModel(name, **options)
    from ferrule.models.compatible import PROVIDERS

    return openai_model(provider, name, **options) if provider in PROVIDERS else None


def _of_plugin(provider: str, name: str, options: dict[str, Any]) -> Model | None:
    """A model of an installed package, made from what stands after the colon. Raises `PluginError`."""
    from ferrule.plugins import plugin_named

    plugin = plugin_named("models", provider)
    if plugin is None:
        return None
    maker = plugin.load()
    if not callable(maker):
        raise PluginError(f"{plugin} is no callable: {plugin.where} must make a model of what stands after the colon")
    made: Model = maker(name, **options)
    return made


def openai_model(provider: str | Provider, name: str, **options: Any) -> OpenAIChat | OpenAIResponses:
    """The model `name` of a provider that speaks OpenAI's formats: `openai_model("groq", "openai/gpt-oss-120b")`.

    `options` go to the model's class. Raises `ModelError` for a provider that isn't known, and for a key or an address
    that is missing.
    """
    from ferrule.models.compatible import provider_of

    found = provider_of(provider)
    if found.api == "responses":
        from ferrule.models.openai_responses import OpenAIResponses

        return OpenAIResponses(name, found, **options)
    from ferrule.models.openai_chat import OpenAIChat

    return OpenAIChat(name, found, **options)


def _known() -> str:
    from ferrule.models.compatible import PROVIDERS
    from ferrule.plugins import installed

    own = {*PROVIDERS, "anthropic", "google"}
    providers = ", ".join(sorted({*own, *(plugin.name for plugin in installed("models"))}))
    return f"there are embedded, echo, local:<folder>, and <provider>:<model> with the providers {providers}"
