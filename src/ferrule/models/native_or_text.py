"""A model whose server may refuse tools: they are offered by its API, and from a refusal on in the text."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from ferrule.capabilities import Loss
from ferrule.errors import choose_advice
from ferrule.events import CallFinished, LossesReported, MessageFinished
from ferrule.models.gateway import ToolsRefused
from ferrule.models.protocol import ModelSettings

if TYPE_CHECKING:
    from ferrule.capabilities import Capabilities
    from ferrule.conversation import Conversation, Message
    from ferrule.events import Event
    from ferrule.models.hosted import HostedModel
    from ferrule.models.text_mode import TextModeModel
    from ferrule.toolspec import ToolSpec

logger = logging.getLogger(__name__)
_LIKE_A_CALL = re.compile(r"<\W*(tool|function|python_tag|invoke)|\[TOOL_CALLS?\]", re.IGNORECASE)
"""What begins calls in most notations; whether a text really has one is up to their readers."""
_SEARCHED = 20_000
"""How many characters of an answer are searched for a call from there on."""


class NativeOrTextModel:
    """Asks a hosted model with its native tools, and in text mode once its server has refused them.

    Whether a server takes tools depends on the model that it serves and on its options, so it is tried. The refusal is
    logged as a warning, and the hosted model remembers it: its `capabilities` then say that it has no native tools.
    """

    def __init__(self, model: HostedModel, notation: str) -> None:
        self.model = model
        self.name = model.name
        self._notation = notation
        self._text_model: TextModeModel | None = None

    @property
    def mode(self) -> str:
        """How calls are written: `api`, or the name of the notation."""
        return "api" if self.model.capabilities.native_tools else self._notation

    @property
    def capabilities(self) -> Capabilities:
        """What is supported in the current mode."""
        return self.model.capabilities if self.mode == "api" else self._get_text_model().capabilities

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Settings that text mode doesn't support (`choice`) are dropped after a refusal."""
        if self.mode == "api":
            try:
                async with aclosing(self.model.stream(conversation, tools, settings)) as events:
                    async for event in events:
                        if isinstance(event, MessageFinished) and (
                            found := self._find_unread_call(event.message, tools)
                        ):
                            yield LossesReported((found,))
                        yield event
                return
            except ToolsRefused as error:
                if not tools:
                    raise
                self.model.stop_native_tools()
                self._warn(error)
        model = self._get_text_model()
        kept = {name: getattr(settings, name) for name in settings.model_fields_set & model.capabilities.settings}
        async with aclosing(model.stream(conversation, tools, ModelSettings(**kept))) as events:
            async for event in events:
                yield event

    def _warn(self, error: ToolsRefused) -> None:
        mode = choose_advice(f'mode="{self._notation}"', f"--mode {self._notation}")
        logger.warning("%s; the tools are offered in the text instead, as by %s", str(error).rstrip("."), mode)

    def _get_text_model(self) -> TextModeModel:
        if self._text_model is None:
            # Most models never need it.
            from ferrule.dialects.catalogue import get_notation
            from ferrule.models.text_mode import TextModeModel

            self._text_model = TextModeModel(self.model, get_notation(self._notation))
        return self._text_model

    def _find_unread_call(self, message: Message, tools: Sequence[ToolSpec]) -> Loss | None:
        """A call of an offered tool that the server left in the text of a message, and the mode that would read it."""
        begun = _LIKE_A_CALL.search(message.text)
        if begun is None or message.calls or not tools:
            return None
        from ferrule.dialects.catalogue import get_notation, load_families

        names, text = {tool.name for tool in tools}, message.text[begun.start() :][:_SEARCHED]
        # Many families write calls as these two do.
        for notation in map(get_notation, (self._notation, "qwen3_coder", *load_families())):
            reader = notation.reader(tools)
            for event in (*reader.feed(text), *reader.close()):
                if isinstance(event, CallFinished) and event.call.name in names:
                    mode = choose_advice(f'mode="{notation.name}"', f"--mode {notation.name}")
                    detail = f"the server returned the model's call of {event.call.name!r} as text, so it was not run; "
                    return Loss("call", f"{detail}turn on the server's parser of tool calls, or use {mode}")
        return None

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()
