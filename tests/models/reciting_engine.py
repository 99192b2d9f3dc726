"""An engine that samples what it was given to say: another `Engine` than the one in the package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from pathlib import Path
from typing import Any

from ferrule._util.async_closing import AsyncClosing
from ferrule.dialects.segments import Control
from ferrule.engines import Finished, ImageInput, Sampled, Sampling
from ferrule.models.checkpoints.loading import read_tokenizer
from ferrule.tokens.render import encode_segments


class RecitingEngine(AsyncClosing):
    """Samples `texts` one after the other, control tokens by their names.

    `prompts` and `images` are those that it was given.
    """

    context_length = 4096
    can_constrain = False

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        tokenizer = read_tokenizer(folder / "tokenizer.json")
        self._answers = [encode_segments([Control(text)], tokenizer).ids for text in texts]
        self.prompts: list[tuple[int, ...]] = []
        self.images: list[tuple[ImageInput, ...]] = []

    def generate(
        self,
        ids: Sequence[int],
        *,
        sampling: Sampling,
        stop_ids: Collection[int],
        images: Sequence[ImageInput] = (),
        constraint: Any = None,
    ) -> AsyncGenerator[list[Sampled] | Finished, None]:
        answer = self._answers[len(self.prompts)]
        assert answer[-1] in stop_ids
        self.prompts.append(tuple(ids))
        self.images.append(tuple(images))
        return self._recite(answer, len(ids))

    @staticmethod
    async def _recite(answer: Sequence[int], given: int) -> AsyncGenerator[list[Sampled] | Finished, None]:
        yield [Sampled(token, -0.5) for token in answer]
        yield Finished("stop", given, cached_tokens=0, sampled_tokens=len(answer))

    async def aclose(self) -> None:
        """Nothing is held."""
