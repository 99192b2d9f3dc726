"""Starts a run from a trained model, also from a smaller one: continuing training costs less than starting over.

Layers in the middle are doubled, and a copy's two output matrices are zero; a wider network has the small one in its
first features, heads and units, and what is new writes nothing yet. So the grown network computes the same as the small
one, and every new part can learn from what the old ones detect (the idea is Net2Net's, Chen et al., 2015). A key-value
head becomes several alike, which learn apart as other queries read them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from torch import Tensor

from ferrule.errors import SettingsError
from ferrule.training.embedded.network import Network, Shape

_LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)")
_OUTPUTS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
_HEADS = ("self_attn.q_proj.weight", "self_attn.o_proj.weight")
_SHARED_HEADS = ("self_attn.k_proj.weight", "self_attn.v_proj.weight")
_NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight")
_GROWING = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
_FREE = "max_position_embeddings"
"""A size without weights: positions are rotations."""


def begin_from(network: Network, folder: Path) -> None:
    """Load the weights of the model in `folder` into a network of its size or larger.

    New features, heads and units keep the network's own initial weights, except where they would write to the rest.
    Raises `SettingsError` if there is no model, or if the network can't grow from it.
    """
    weights, small = _load(folder)
    large = network.shape
    depth, wanted = small.num_hidden_layers, large.num_hidden_layers
    if not 0 < depth <= wanted <= 2 * depth:
        raise SettingsError(
            f"start: {folder} has {depth} layers, which can't become {wanted}: only 1 to 2 times as many"
        )
    if not _is_within(small, large):
        raise SettingsError(f"start: {folder} contains a network of other sizes, which can't become those of this one")
    widened = widen_weights(double_layers(weights, depth, wanted), small, network)
    try:
        network.load_state_dict(widened)
    except RuntimeError as error:
        raise SettingsError(f"start: {folder} contains weights that its config.json doesn't describe") from error


def _load(folder: Path) -> tuple[dict[str, Tensor], Shape]:
    """The weights in float32, and the sizes of their network."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.is_file():
        raise SettingsError(f"start: {folder} contains no model.safetensors to start from")
    try:
        weights = {name: tensor.float() for name, tensor in load_file(path).items()}
        config = json.loads((folder / "config.json").read_text("utf-8"))
        shape = Shape(**{name: config[name] for name in Shape.__dataclass_fields__})
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"start: the model in {folder} can't be read: {error}") from error
    return weights, shape


def _is_within(small: Shape, large: Shape) -> bool:
    same = [name for name in Shape.__dataclass_fields__ if name not in (*_GROWING, _FREE)]
    return (
        all(getattr(small, name) == getattr(large, name) for name in same)
        and all(getattr(small, name) <= getattr(large, name) for name in _GROWING)
        and large.num_key_value_heads % small.num_key_value_heads == 0
    )


def double_layers(weights: dict[str, Tensor], depth: int, wanted: int) -> dict[str, Tensor]:
    """The weights of a network of `wanted` layers that computes the same as these of `depth` layers."""
    order = order_layers(depth, wanted)
    result = {}
    for name, tensor in weights.items():
        match = _LAYER.match(name)
        if match is None:
            result[name] = tensor
            continue
        for place, (source, is_copy) in enumerate(order):
            if source == int(match[1]):
                is_silent = is_copy and match[2] in _OUTPUTS
                result[f"model.layers.{place}.{match[2]}"] = torch.zeros_like(tensor) if is_silent else tensor
    return result


def order_layers(depth: int, wanted: int) -> list[tuple[int, bool]]:
    """The source layer for each layer, and whether it is a copy; the middle ones are doubled first."""
    inner = sorted(range(depth), key=lambda layer: abs(2 * layer - depth + 1))
    doubled = set(inner[: wanted - depth])
    return [(layer, is_copy) for layer in range(depth) for is_copy in (False, True) if layer in doubled or not is_copy]


def widen_weights(weights: dict[str, Tensor], small: Shape, network: Network) -> dict[str, Tensor]:
    """The weights of `network` such that it computes the same as these, of as many layers with the sizes of `small`."""
    heads = _place_heads(small, network.shape)
    # A norm divides by the mean square, which features of zero make smaller.
    gain = (small.hidden_size / network.shape.hidden_size) ** 0.5
    result = {}
    for name, own in network.state_dict().items():
        given = weights.get(name)
        if given is not None and name.endswith(_SHARED_HEADS):
            given = _repeat_heads(given, small, network.shape)
        if given is None or own.shape == given.shape:
            result[name] = own if given is None else given
            continue
        widened = own.clone()
        if name.endswith(_NORMS):
            widened[: len(given)] = given * gain
        else:
            rows = heads if name.endswith(_HEADS[0]) else torch.arange(given.shape[0])
            columns = heads if name.endswith(_HEADS[1]) else torch.arange(given.shape[1])
            if name.endswith((*_OUTPUTS, "embed_tokens.weight")):
                widened.zero_()
            widened[rows[:, None], columns] = given
        result[name] = widened
    return result


def _repeat_heads(weights: Tensor, small: Shape, large: Shape) -> Tensor:
    """The key or value weights of `small` for the heads of `large`: each head as often as it has become."""
    heads = weights.view(small.num_key_value_heads, small.head_dim, -1)
    return heads.repeat_interleave(large.num_key_value_heads // small.num_key_value_heads, 0).flatten(0, 1)


def _place_heads(small: Shape, large: Shape) -> Tensor:
    """Where the features of the small network's query heads lie in the large one: each stays in its group."""
    groups, size = small.num_key_value_heads, small.head_dim
    old, new = small.num_attention_heads // groups, large.num_attention_heads // groups
    places = torch.arange(groups * new * size).view(groups, new, size)
    return places[:, :old].flatten()
