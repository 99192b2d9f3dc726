"""Loads a model of transformers from a checkpoint's folder, and refuses what transformers would only warn about.

Weights that are missing from a checkpoint are drawn at random by transformers, and those that it doesn't know are left
out: both are errors here. Weights are read from safetensors only, never from a pickle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ferrule.engines.families import RUN_FAMILIES
from ferrule.engines.torch_model import silence_transformers
from ferrule.errors import EngineError

DTYPES = ("auto", "float32", "bfloat16", "float16")
_SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")
"""The maps by which accelerate spreads a model over several devices."""
_SHOWN_KEYS = 3


def load_model(
    folder: Path,
    *,
    dtype: str | torch.dtype = "auto",
    device_map: Any = None,
    trust_remote_code: bool = False,
) -> Any:
    """The model in a folder.

    `dtype` is one of `DTYPES`, `auto` being the config's. `device_map` is a device (`cpu`, `cuda`, `cuda:1`, `mps`), or
    what transformers takes to spread it over several, which needs accelerate; None takes `cuda` if there is one, or
    else `cpu`. Raises `EngineError`.
    """
    given, device = _check_dtype(dtype), choose_device(device_map)
    with silence_transformers(), _describe_failures(folder):
        import transformers

        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        _check_family(config.model_type, folder)
        loader = _choose_loader(transformers, config)
        model, report = loader.from_pretrained(
            folder,
            config=config,
            dtype=given,
            device_map=device_map if device is None else None,
            trust_remote_code=trust_remote_code,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are an error below, which names them
        )
    _check_keys(report, folder)
    return model if device is None else _move(model, device)


def _check_dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    if dtype not in DTYPES:
        raise EngineError(f"dtype: {dtype!r} is not one of {', '.join(DTYPES)}")
    found: torch.dtype = getattr(torch, dtype)
    return found


def choose_device(device_map: Any) -> torch.device | None:
    """The one device that a map means; None for one of several. Raises `EngineError` for one that isn't there."""
    if device_map is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if isinstance(device_map, dict) or device_map in _SPREAD:
        _require_accelerate(device_map)
        return None
    present = _list_devices()
    try:
        device = torch.device(device_map)
    except (RuntimeError, TypeError) as error:
        expected = ", ".join((*present, *_SPREAD))
        raise EngineError(f"device_map: {device_map!r} is no device; expected one of {expected}") from error
    if str(device) not in present:
        raise EngineError(f"device_map: this torch finds no device {device_map}; it finds {', '.join(present)}")
    return device


def _list_devices() -> list[str]:
    found = ["cpu"]
    if torch.cuda.is_available():
        found += ["cuda", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        found += ["mps", "mps:0"]
    return found


def _require_accelerate(device_map: Any) -> None:
    from transformers.utils import is_accelerate_available

    if not is_accelerate_available():
        raise EngineError(
            f"device_map: {device_map!r} spreads a model over devices, which needs: pip install accelerate; "
            "a single device, such as cpu or cuda, does not"
        )


def _check_family(family: str, folder: Path) -> None:
    if family not in RUN_FAMILIES:
        raise EngineError(f"{folder}: family {family!r} is not run; those that are: {', '.join(RUN_FAMILIES)}")


def _choose_loader(transformers: Any, config: Any) -> Any:
    """The class for text, or the one for text and images where the family has only that."""
    names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    reads_text = config.model_type in names or "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    return transformers.AutoModelForCausalLM if reads_text else transformers.AutoModelForImageTextToText


def _check_keys(report: Any, folder: Path) -> None:
    """Raise `EngineError` for weights that the model lacks, doesn't know, or that have another shape."""
    wrong = {
        "lack": report["missing_keys"],
        "have, unknown to the model,": report["unexpected_keys"],
        "have in another shape": [f"{name} {list(has)}" for name, has, _ in report["mismatched_keys"]],
    }
    found = [f"{what} {_list_some(names)}" for what, names in wrong.items() if names]
    if found:
        raise EngineError(f"{folder}: the weights don't fit config.json: they {'; they '.join(found)}")


def _list_some(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN_KEYS])
    return f"{shown} and {len(names) - _SHOWN_KEYS} more" if len(names) > _SHOWN_KEYS else shown


def _move(model: Any, device: torch.device) -> Any:
    try:
        return model.to(device)
    except RuntimeError as error:  # out of memory, among others
        raise EngineError(f"the model can't be moved to {device}: {_get_first_line(error)}") from error


@contextmanager
def _describe_failures(folder: Path) -> Iterator[None]:
    try:
        yield
    except EngineError:
        raise
    # A damaged or unknown checkpoint raises whatever transformers, or the code that came with it, stumbles over.
    except Exception as error:
        raise EngineError(f"{folder}: transformers can't load it: {_get_first_line(error)}") from error


def _get_first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
