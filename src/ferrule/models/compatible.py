"""Who speaks OpenAI's chat completions, at which address, and in what each differs.

One line of the table for each provider. Of a server that people run themselves (vLLM, llama.cpp, …) it says what a
current version takes. A difference that isn't known here can be given: `OpenAIChat("my-model", "compatible",
base_url="http://…/v1")`, and `replace(PROVIDERS["vllm"], top_k=False)` in place of a provider's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ferrule.errors import ModelError
from ferrule.formats.openai import ChatStyle


@dataclass(frozen=True, slots=True)
class Provider:
    """An address and its quirks. What is False or None is refused by name where a setting asks for it."""

    name: str
    label: str
    """What people call it."""
    base_url: str
    key: str
    """The environment variable of the key; one is taken from there also where none is needed."""
    needs_key: bool = True
    url: str | None = None
    """The environment variable of another address."""
    style: ChatStyle = field(default_factory=lambda: ChatStyle(json_arguments=True, developer=False, details=False))
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] | None = "seed"
    top_k: bool = False
    stop: bool = True
    choice: bool = True
    named_choice: bool = True
    """Whether one tool can be required by name; otherwise it is offered alone and required."""
    parallel_calls: bool = True
    effort: Literal["reasoning_effort", "reasoning"] | None = "reasoning_effort"
    output_schema: Literal["strict", "plain"] | None = "plain"
    """Whether an answer can be held to a schema, and whether only to one of the strict kind."""
    usage_option: bool = True
    """Whether usage comes only when it is asked for by `stream_options`, which some refuse."""
    user_images: bool = True
    api: Literal["chat", "responses"] = "chat"

    @property
    def settings(self) -> frozenset[str]:
        """The names of the settings that it honours."""
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


def _style(**quirks: Any) -> ChatStyle:
    """A server whose chat templates decode arguments, and which knows neither `developer` nor OpenRouter's details."""
    return ChatStyle(**{"json_arguments": True, "developer": False, "details": False, **quirks})


_OPENAI = ChatStyle(reasoning=None, details=False, ids="short")
_MISTRAL = _style(reasoning="thinking", ids="nine", refusal=False, named=False, user_after_result=False)

_TABLE = (
    Provider(
        "openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL", style=_OPENAI,
        max_tokens="max_completion_tokens", output_schema="strict",
    ),
    Provider(
        "openai-responses", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", url="OPENAI_BASE_URL",
        seed=None, stop=False, output_schema="strict", api="responses",
    ),
    Provider("vllm", "vLLM", "http://localhost:8000/v1", "VLLM_API_KEY", False, top_k=True),
    Provider("sglang", "SGLang", "http://localhost:30000/v1", "SGLANG_API_KEY", False, top_k=True),
    # Asked for one tool by name, llama.cpp goes on as if any would do.
    Provider(
        "llamacpp", "llama.cpp", "http://localhost:8080/v1", "LLAMA_API_KEY", False,
        top_k=True, named_choice=False, effort=None,
    ),
    # Ollama reads no `tool_choice`, so asking for a call there is asking in words.
    Provider(
        "ollama", "Ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", False, style=_style(reasoning="reasoning"),
        choice=False, parallel_calls=False,
    ),
    Provider(
        "lmstudio", "LM Studio", "http://localhost:1234/v1", "LMSTUDIO_API_KEY", False,
        top_k=True, named_choice=False, parallel_calls=False,
    ),
    Provider(
        "groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", style=_style(reasoning="reasoning"),
        max_tokens="max_completion_tokens", output_schema="strict",
    ),
    Provider(
        "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY",
        style=_style(reasoning="reasoning", details=True), top_k=True, effort="reasoning",
    ),
    # DeepSeek refuses a conversation whose calls come without what was thought before them.
    Provider(
        "deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY",
        seed=None, parallel_calls=False, output_schema=None, user_images=False,
    ),
    # Mistral refuses any field that it doesn't know, and sends usage unasked.
    Provider(
        "mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", style=_MISTRAL,
        seed="random_seed", usage_option=False,
    ),
    Provider(
        "together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", style=_style(reasoning="reasoning"),
        top_k=True, parallel_calls=False,
    ),
    Provider(
        "fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY",
        top_k=True, parallel_calls=False,
    ),
    Provider("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", max_tokens="max_completion_tokens"),
    Provider(
        "cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", style=_style(reasoning="reasoning"),
        max_tokens="max_completion_tokens", output_schema="strict",
    ),
    Provider("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
    Provider("compatible", "the server", "", "OPENAI_COMPATIBLE_API_KEY", False),
)  # fmt: skip

PROVIDERS = {provider.name: provider for provider in _TABLE}
"""Every provider by the name that `model("<name>:<model>")` takes."""


def provider_of(provider: str | Provider) -> Provider:
    """A line of the table. Raises `ModelError` for a name that has none."""
    if isinstance(provider, Provider):
        return provider
    found = PROVIDERS.get(provider)
    if found is None:
        raise ModelError(f"there is no provider {provider!r}; there are {', '.join(PROVIDERS)}")
    return found
