"""What the tests of hosted models ask and offer."""

from __future__ import annotations

from collections.abc import Callable

from ferrule.conversation import Conversation, Image, user
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.gateway import GatewaySettings, Timeouts, configure
from ferrule.models.google.model import GoogleModel
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.protocol import Model, ModelSettings
from ferrule.tools.decorator import tool

QUESTION = Conversation((user("What is 12 * 34?"),))
PIXEL = b"\x89PNG\r\n\x1a\nnot really"

HOSTED: dict[str, Callable[[str], Model]] = {
    "openai": lambda address: OpenAIChat("m", "compatible", base_url=address),
    "anthropic": lambda address: AnthropicModel("m", api_key="k", base_url=address),
    "google": lambda address: GoogleModel("m", api_key="k", base_url=address),
}


@tool
def look(at: str) -> list[str | Image]:
    """Look at something."""
    return [f"This is {at}.", Image(PIXEL)]


def try_again_at_once(url, timeouts=None) -> None:
    """What is tried again at this address is tried again at once."""
    configure(url, GatewaySettings(first_delay=0.001, longest_delay=0.002, timeouts=timeouts or Timeouts()))


async def events_of(made, conversation=QUESTION, tools=(), **settings):
    return [event async for event in made.stream(conversation, tools, ModelSettings(**settings))]
