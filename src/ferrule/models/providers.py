"""The table of all providers, with their addresses and requirements; add another one here.

A provider that speaks OpenAI's chat completions is one line here. One with its own API is one line, and a folder next
to this file with its `HostedModel`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from ferrule.errors import ModelError
from ferrule.formats.openai import MEDIA, ChatStyle

_CHAT = "ferrule.models.openai.chat:OpenAIChat"
_RESPONSES = "ferrule.models.openai.responses:OpenAIResponses"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: its address, its key, and the class of its models."""

    name: str
    """The part before the colon in `model("<name>:<model>")`."""
    label: str
    """The name shown to people."""
    base_url: str
    """Its address; empty if it must be given."""
    key: str
    """The environment variable of the key, read even if no key is required."""
    needs_key: bool = True
    url: str | None = None
    """The environment variable that overrides the address."""
    model: str = _CHAT
    """The module and name of the class of its models."""
    other_key: str | None = None
    """Another environment variable that may hold the key."""
    schema_with_tools: bool = False
    """Whether its models can still call tools when they are constrained to a schema of the answer. Where a server
    enforces the schema by a grammar for the whole message, they can't."""

    gemini: str | None = None
    """The module and name of the class of its models whose names begin with `gemini`, where that is another one."""

    sign_in: str = ""
    """What its package signs in with, where that isn't a key alone."""
    packages: tuple[str, ...] = ("httpx2",)
    """The modules that its models need."""
    extra: str = "hosted"
    """The extra that installs them."""

    def find_missing_package(self) -> str | None:
        """A module that its models need and that isn't installed, found without importing any."""
        for name in self.packages:
            try:
                if find_spec(name) is None:
                    return name
            except (ModuleNotFoundError, ValueError):
                return name
        return None

    def find_class(self, model: str) -> str:
        """The module and name of a model's class."""
        return self.gemini if self.gemini and model.startswith("gemini") else self.model

    @property
    def address(self) -> str:
        """Its address, considering the environment; empty if it must be given."""
        return (os.environ.get(self.url) if self.url else None) or self.base_url

    @property
    def keys(self) -> tuple[str, ...]:
        """The environment variables that may contain its key, in order of precedence."""
        return tuple(key for key in (self.key, self.other_key) if key)

    @property
    def key_is_set(self) -> bool:
        """Whether the environment or the user's file has a key for it. Raises `SettingsError` for a broken file."""
        if any(os.environ.get(key, "").strip() for key in self.keys):
            return True
        from ferrule.models.keys import read_keys

        return self.key in read_keys()


def _style(**quirks: Any) -> ChatStyle:
    """A server whose chat templates decode arguments, and which supports neither `developer` nor OpenRouter's
    details."""
    return ChatStyle(**{"json_arguments": True, "developer": False, "details": False, "text_lists": False, **quirks})


@dataclass(frozen=True, slots=True)
class OpenAIProvider(Provider):
    """A provider that speaks one of OpenAI's formats, and its quirks.

    A setting whose entry is False or None is refused by name. For servers that people run themselves (vLLM, llama.cpp,
    …) the table describes a current version.
    """

    style: ChatStyle = field(default_factory=_style)
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] | None = "seed"
    top_k: bool = False
    stop: bool = True
    choice: bool = True
    named_choice: bool = True
    """Whether a single tool can be required by name; otherwise it is offered alone and required."""
    parallel_calls: bool = True
    effort: Literal["reasoning_effort", "reasoning"] | None = "reasoning_effort"
    output_schema: Literal["strict", "plain"] | None = "plain"
    """Whether answers can be constrained by a schema, and whether only by a strict one."""
    strict_tools: bool = False
    """Whether a function's `strict` makes the server constrain arguments by the tool's schema, as it is."""
    usage_option: bool = True
    """Whether usage must be requested with `stream_options`, which some refuse."""
    user_images: bool = True
    user_media: tuple[str, ...] = ()
    """The media types of audio and files that its models take."""

    @property
    def settings(self) -> frozenset[str]:
        """The names of the settings that it supports."""
        optional = {
            "stop": self.stop,
            "seed": self.seed,
            "top_k": self.top_k,
            "choice": self.choice,
            "parallel_calls": self.parallel_calls,
            "effort": self.effort,
            "output_schema": self.output_schema,
        }
        always = {"temperature", "top_p", "max_tokens", "extra"}
        return frozenset(always | {name for name, honoured in optional.items() if honoured})


_OPENAI = ChatStyle(reasoning=None, details=False, ids="short", text_lists=False)
_MISTRAL = _style(reasoning="thinking", ids="nine", refusal=False, named=False, user_after_result=False)

_OPENAI_TABLE = (
    OpenAIProvider(
        "openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL", style=_OPENAI,
        max_tokens="max_completion_tokens", output_schema="strict", user_media=MEDIA, schema_with_tools=True,
    ),
    OpenAIProvider(
        "openai-responses", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL",
        seed=None, stop=False, output_schema="strict", model=_RESPONSES, schema_with_tools=True,
    ),
    OpenAIProvider(
        "azure", "Azure OpenAI", "", "AZURE_OPENAI_API_KEY", False, url="AZURE_OPENAI_ENDPOINT", style=_OPENAI,
        max_tokens="max_completion_tokens", output_schema="strict", user_media=MEDIA,
        model="ferrule.models.cloud.azure:AzureModel", packages=("httpx2", "openai"), extra="azure",
        sign_in="a key, or tokens of Entra ID", schema_with_tools=True,
    ),
    OpenAIProvider("vllm", "vLLM", "http://localhost:8000/v1", "VLLM_API_KEY", False, top_k=True, strict_tools=True),
    OpenAIProvider(
        "sglang", "SGLang", "http://localhost:30000/v1", "SGLANG_API_KEY", False, top_k=True, strict_tools=True
    ),
    # Given one tool by name, llama.cpp behaves as if any would do.
    OpenAIProvider(
        "llamacpp", "llama.cpp", "http://localhost:8080/v1", "LLAMA_API_KEY", False,
        top_k=True, named_choice=False, effort=None,
    ),
    # Ollama ignores `tool_choice`, so requiring a call has no effect there.
    OpenAIProvider(
        "ollama", "Ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", False, style=_style(reasoning="reasoning"),
        choice=False, parallel_calls=False,
    ),
    OpenAIProvider(
        "lmstudio", "LM Studio", "http://localhost:1234/v1", "LMSTUDIO_API_KEY", False,
        top_k=True, named_choice=False, parallel_calls=False,
    ),
    OpenAIProvider(
        "groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", style=_style(reasoning="reasoning"),
        max_tokens="max_completion_tokens", output_schema="strict",
    ),
    OpenAIProvider(
        "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY",
        style=_style(reasoning="reasoning", details=True), top_k=True, effort="reasoning", user_media=MEDIA,
    ),
    # DeepSeek refuses a conversation with calls whose reasoning is missing.
    OpenAIProvider(
        "deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY",
        seed=None, parallel_calls=False, output_schema=None, user_images=False,
    ),
    # Mistral refuses unknown fields, and always sends usage.
    OpenAIProvider(
        "mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", style=_MISTRAL,
        seed="random_seed", usage_option=False,
    ),
    OpenAIProvider(
        "together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", style=_style(reasoning="reasoning"),
        top_k=True, parallel_calls=False,
    ),
    OpenAIProvider(
        "fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY",
        top_k=True, parallel_calls=False,
    ),
    OpenAIProvider("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", max_tokens="max_completion_tokens"),
    OpenAIProvider(
        "cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", style=_style(reasoning="reasoning"),
        max_tokens="max_completion_tokens", output_schema="strict",
    ),
    OpenAIProvider("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
    OpenAIProvider("compatible", "the server", "", "OPENAI_COMPATIBLE_API_KEY", False),
)  # fmt: skip

OPENAI_PROVIDERS = {provider.name: provider for provider in _OPENAI_TABLE}
"""The providers that speak one of OpenAI's formats, by name."""

_OTHERS = (
    Provider(
        "anthropic", "Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", url="ANTHROPIC_BASE_URL",
        model="ferrule.models.anthropic.model:AnthropicModel", schema_with_tools=True,
        other_key="ANTHROPIC_AUTH_TOKEN",
    ),
    Provider(
        "google", "Google", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", url="GOOGLE_GEMINI_BASE_URL",
        model="ferrule.models.google.model:GoogleModel", other_key="GOOGLE_API_KEY", schema_with_tools=True,
    ),
    Provider(
        "bedrock", "Amazon Bedrock", "", "AWS_BEARER_TOKEN_BEDROCK", False, url="ANTHROPIC_BEDROCK_BASE_URL",
        model="ferrule.models.cloud.claude:BedrockModel", packages=("httpx2", "anthropic", "boto3"), extra="bedrock",
        sign_in="AWS credentials, or a key", schema_with_tools=True,
    ),
    Provider(
        "vertex", "Vertex AI", "", "", False, model="ferrule.models.cloud.claude:VertexClaude",
        gemini="ferrule.models.cloud.gemini:VertexGemini", packages=("httpx2", "anthropic", "google.auth"),
        extra="vertex", sign_in="Google's default credentials", schema_with_tools=True,
    ),
)  # fmt: skip

PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in (*_OTHERS, *_OPENAI_TABLE)}
"""Every provider by the name in `model("<name>:<model>")`."""


def find_provider(provider: str | Provider) -> Provider:
    """The provider with that name. Raises `ModelError` for an unknown one."""
    if isinstance(provider, Provider):
        return provider
    found = PROVIDERS.get(provider)
    if found is None:
        raise ModelError(f"unknown provider {provider!r}; expected one of {', '.join(PROVIDERS)}")
    return found
