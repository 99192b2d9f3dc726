"""Models by name: `provider:model`, `local:folder`, `embedded`, `echo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.errors import ModelError, SettingsError
from ferrule.models.protocol import Model

if TYPE_CHECKING:
    from ferrule.models.compatible import Provider
    from ferrule.models.openai_chat import OpenAIChat
    from ferrule.models.openai_responses import OpenAIResponses


def model_named(name: str, **options: Any) -> Model:
    """The model of that name; `options` (`api_key`, `base_url`, `dialect`, …) go to its maker.

    Raises `ModelError` for a name that there isn't, a key that is missing or a package that isn't installed.
    """
    provider, _, rest = name.partition(":")
    try:
        if name == "embedded":
            from ferrule.models.embedded import embedded_model

            return embedded_model(**options)
        if name == "echo":
            from ferrule.models.echo import EchoModel

            return EchoModel(**options)
        if rest:
            found = _of_provider(provider, rest, options)
            if found is not None:
                return found
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
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

    providers = ", ".join(sorted({*PROVIDERS, "anthropic", "google"}))
    return f"there are embedded, echo, local:<folder>, and <provider>:<model> with the providers {providers}"
