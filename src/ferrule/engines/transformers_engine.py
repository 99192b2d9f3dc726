"""Runs models of transformers, on whatever device they are, for many conversations at once. Needs the `local` extra."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import torch

from ferrule.engines.batching_engine import BatchingEngine
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.constraints import Vocabulary
from ferrule.engines.state_decoder import StateDecoder
from ferrule.engines.torch_decoder import TorchDecoder
from ferrule.engines.torch_model import inspect_model
from ferrule.errors import EngineError


class TransformersEngine(BatchingEngine):
    """An `Engine` over a causal language model of transformers, such as `AutoModelForCausalLM` loads.

    The model is set to evaluation mode, and stays the caller's: its weights may be changed, see `weights_changed`.
    `max_batch` conversations are computed at once, more wait. `kv_memory` limits, in bytes, what running conversations
    and kept prefixes take together on the device; by default half of what is free there. `context_length` may be
    shorter than the config's. `vocabulary`, as a tokenizer has it, is what a constraint needs.

    Raises `EngineError` naming the family for a model that it doesn't run.
    """

    def __init__(
        self,
        model: Any,
        *,
        vocabulary: Vocabulary | None = None,
        max_batch: int = 32,
        context_length: int | None = None,
        kv_memory: int | None = None,
    ) -> None:
        shape = inspect_model(model)
        if context_length is not None and not 1 <= context_length <= shape.context_length:
            raise EngineError(f"context_length {context_length} is not between 1 and {shape.context_length}")
        if kv_memory is not None and kv_memory < 0:
            raise EngineError(f"kv_memory {kv_memory} is not 0 or more")
        self.model = model
        make_decoder = StateDecoder if shape.state_bytes else TorchDecoder
        memory = _measure_free(shape.device) // 2 if kv_memory is None else kv_memory
        super().__init__(
            make_decoder(model, shape, shape.vocabulary_size if vocabulary is None else vocabulary.vocabulary_size),
            vocabulary_size=shape.vocabulary_size,
            context_length=context_length or shape.context_length,
            max_batch=max_batch,
            memory=memory,
            prefix_bytes=memory,
            constraints=None if vocabulary is None else ConstraintCompiler(vocabulary),
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        dtype: str | torch.dtype = "auto",
        device_map: Any = None,
        trust_remote_code: bool = False,
        **settings: Any,
    ) -> Self:
        """Load the checkpoint in a folder, as `load_model` does; `settings` are those of the engine."""
        from ferrule.engines.torch_loading import load_model

        loaded = load_model(Path(folder), dtype=dtype, device_map=device_map, trust_remote_code=trust_remote_code)
        return cls(loaded, **settings)

    def weights_changed(self, change: Callable[[], None] | None = None) -> None:
        """See `Engine.weights_changed`. While anything is generated there is always a step being computed: weights are
        then to be changed by `change`, which is called between two steps, in the engine's thread.

        With a `change` this returns when it was called, and raises what it raised. The weights count as changed then
        too: running generations go on with whatever they are. Raises `EngineError` in the engine's own thread, which
        can't wait for itself, and for a closed engine.
        """
        if change is None:
            super().weights_changed()
            return
        if self._scheduler.is_step_thread:
            raise EngineError("weights_changed: called in the engine's own thread, which can't wait for its next step")
        self._scheduler.change_weights(lambda: _call_outside_inference(change)).result()


def _call_outside_inference(change: Callable[[], None]) -> None:
    """What an optimizer allocates in inference mode couldn't be used outside it."""
    with torch.inference_mode(mode=False):
        change()


def _measure_free(device: torch.device) -> int:
    """Free bytes of the device's memory, or of the machine's: where that isn't told, half of all."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        raise EngineError("kv_memory: this machine doesn't tell how much memory it has; give a number of bytes")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
