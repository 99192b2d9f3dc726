"""Begins a run from a model that is there, also one of fewer layers: training on costs less than training anew.

Layers in the middle are doubled, and a copy's two output matrices are zero: the grown network computes what the
small one did, and what a layer looks for is there for its copy to use (the idea is Net2Net's, Chen et al., 2015).
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor

from ferrule.errors import SettingsError
from ferrule.training.embedded.network import Network

_LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)")
_OUTPUTS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")


def begin_from(network: Network, folder: Path) -> None:
    """Give a network the weights of the model in `folder`.

    Raises `SettingsError` where there is none, or one of another width or of more layers.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.is_file():
        raise SettingsError(f"start: {folder} holds no model.safetensors to begin from")
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise SettingsError(f"start: {path} can't be read: {error}") from error
    depth = 1 + max((int(match[1]) for name in weights if (match := _LAYER.match(name))), default=-1)
    wanted = network.shape.num_hidden_layers
    if not 0 < depth <= wanted <= 2 * depth:
        raise SettingsError(
            f"start: {folder} has {depth} layers, which can't become {wanted}: only 1 to 2 times as many"
        )
    try:
        network.load_state_dict(grown(weights, depth, wanted))
    except RuntimeError as error:
        raise SettingsError(f"start: {folder} holds a network of other sizes") from error


def grown(weights: dict[str, Tensor], depth: int, wanted: int) -> dict[str, Tensor]:
    """The weights, in float32, of a network of `wanted` layers that computes what these of `depth` layers do."""
    order = layer_order(depth, wanted)
    result = {name: tensor.float() for name, tensor in weights.items() if not _LAYER.match(name)}
    for name, tensor in weights.items():
        match = _LAYER.match(name)
        if match is None:
            continue
        for place, (source, is_copy) in enumerate(order):
            if source == int(match[1]):
                silent = is_copy and match[2] in _OUTPUTS
                result[f"model.layers.{place}.{match[2]}"] = (
                    torch.zeros_like(tensor).float() if silent else tensor.float()
                )
    return result


def layer_order(depth: int, wanted: int) -> list[tuple[int, bool]]:
    """Which layer stands at each place, and whether it is a copy; the middle ones are doubled first."""
    inner = sorted(range(depth), key=lambda layer: abs(2 * layer - depth + 1))
    doubled = set(inner[: wanted - depth])
    return [(layer, is_copy) for layer in range(depth) for is_copy in (False, True) if layer in doubled or not is_copy]
