"""Engines: token ids in, more token ids out.

Nothing here depends on tools, text or conversations. Importing this package loads neither numpy nor an engine: names
are resolved on first use. By file:

- `protocol`: what an engine is. `batching_engine` is what both engines share: a request's arguments are checked, then
  `scheduler` steps through all of them in a thread of its own, `running_batch` gives them places and memory,
  `prefixes` keeps what ended ones have computed, and `delivery` brings their tokens to event loops.
- `batch_decoder`: what the scheduler asks of a model. `numpy_engine` answers with `decoder`, `kv_cache`, `config` and
  `weights` (of `safetensors`); `transformers_engine` with `torch_decoder`, or `state_decoder` for models that keep a
  state, after `torch_loading` has loaded one of the `families` and `torch_model` has measured it.
- `sampling` chooses ids in numpy, `torch_sampling` on a device.
- `constraints`: what keeps a generation to a grammar. `constraint_compiler` chooses how: `masking` by llguidance, whose
  language `lark` writes, or by `places` in the grammar; `closing` ends a call before its budget does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.conversation import ImageInput
    from ferrule.engines.numpy_engine import NumpyEngine
    from ferrule.engines.protocol import (
        Engine,
        EngineFactory,
        Finished,
        FinishReason,
        Generation,
        Sampled,
        Sampling,
    )
    from ferrule.engines.transformers_engine import TransformersEngine

_HOMES = {
    "Engine": "protocol",
    "EngineFactory": "protocol",
    "FinishReason": "protocol",
    "Finished": "protocol",
    "Generation": "protocol",
    "ImageInput": "protocol",
    "NumpyEngine": "numpy_engine",
    "Sampled": "protocol",
    "Sampling": "protocol",
    "TransformersEngine": "transformers_engine",
}

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

__all__ = [
    "Engine",
    "EngineFactory",
    "FinishReason",
    "Finished",
    "Generation",
    "ImageInput",
    "NumpyEngine",
    "Sampled",
    "Sampling",
    "TransformersEngine",
    "limit_blas_threads",
]


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Have numpy, if it is imported within the block, use one thread, unless the environment says otherwise.

    OpenBLAS starts its threads when it is loaded, and each spins while it waits: for the small matrices of a small
    model that costs more than it saves. The environment is restored at the end, so child processes don't inherit it.
    """
    added = [] if "OMP_NUM_THREADS" in os.environ else [name for name in _THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
