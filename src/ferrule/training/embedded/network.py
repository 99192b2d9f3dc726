"""The embedded model's network in torch: Qwen 3 with Hugging Face's names, small enough to read completely.

Parameter names and arithmetic are those of `Qwen3ForCausalLM`, so that the exported weights load there unchanged; it is
reimplemented here because it compiles to a program about 1.4 times as fast on a CPU. A test of the export compares the
logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

_HIDDEN = -1e4
"""Added to the scores of later positions: far below any score, and a number of every precision."""
_MASK_LENGTH = 1_024
"""The least length for which the mask is made, so that it is rarely made again."""
_SUM_COLUMNS = 16
"""Columns of ones beside the values: as many as a tile of the processor's has, of which one is read."""
_QUERY_BLOCKS = 4
"""Blocks of queries in attention: with four, three eighths of the products with later keys are left out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a network; the names are those of `config.json`."""

    vocab_size: int = 4096
    hidden_size: int = 128
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 32
    intermediate_size: int = 384
    max_position_embeddings: int = 640
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6

    def make_config(self) -> dict[str, Any]:
        """The `config.json` that `transformers` reads."""
        sizes = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "rope_theta"}
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            **sizes,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "hidden_act": "silu",
            "initializer_range": 0.02,
            "rope_theta": self.rope_theta,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "tie_word_embeddings": True,
            "use_cache": True,
        }


class _Norm(nn.Module):
    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self._epsilon) * self.weight


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._heads, self._groups, self._size = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
        width = shape.hidden_size
        self.q_proj = nn.Linear(width, self._heads * self._size, bias=False)
        self.k_proj = nn.Linear(width, self._groups * self._size, bias=False)
        self.v_proj = nn.Linear(width, self._groups * self._size, bias=False)
        self.o_proj = nn.Linear(self._heads * self._size, width, bias=False)
        self.q_norm = _Norm(self._size, shape.rms_norm_eps)
        self.k_norm = _Norm(self._size, shape.rms_norm_eps)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, length, self._heads, self._size)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, length, self._groups, self._size)).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self._groups, self._size).transpose(1, 2)
        mixed = self._mix(_rotate(q, rope), _rotate(k, rope), v, mask)
        return cast(Tensor, self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1)))

    def _mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """The values (batch, heads, length, size) by the weights of the queries: half as long on a CPU in bfloat16 as
        the fused attention, most of all its backward pass.

        Queries go in blocks: one block needs no keys of those after it.
        """
        batch, _, length, size = q.shape
        stacked, shared = batch * self._groups, self._heads // self._groups
        queries = q.reshape(stacked, shared, length, size) * size**-0.5
        keys = k.flatten(0, 1).transpose(1, 2)
        # The sum of the weights is one more column of the product: no pass over them of its own, forth or back.
        ones = torch.ones(stacked, length, _SUM_COLUMNS, dtype=v.dtype, device=v.device)
        values = torch.cat((v.flatten(0, 1), ones), -1)
        mixed = []
        for block in range(_QUERY_BLOCKS):
            start, end = block * length // _QUERY_BLOCKS, (block + 1) * length // _QUERY_BLOCKS
            # Queries that share keys are rows of one product. Copied also where none do: compiled for any length, a
            # view would keep the strides of the first one.
            rows = queries[:, :, start:end].contiguous().view(stacked, -1, size)
            scores = torch.bmm(rows, keys[..., :end]).view(stacked, shared, end - start, end)
            # Queries and keys are normalised, so no score is large enough for its exponential to overflow.
            weights = torch.exp(scores + mask[start:end, :end]).view(stacked, -1, end)
            mixed.append(torch.bmm(weights, values[:, :end]).view(stacked, shared, end - start, -1))
        summed = torch.cat(mixed, 2).view(batch, self._heads, length, -1)
        return summed[..., :size] / summed[..., size : size + 1]


class _MLP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x)))


class _Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = _Norm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = _Norm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = _MLP(shape)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope, mask)
        return cast(Tensor, x + self.mlp(self.post_attention_layernorm(x)))


def _rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rope
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos + turned * sin).to(x.dtype)


class _Trunk(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(_Block(shape) for _ in range(shape.num_hidden_layers))
        self.norm = _Norm(shape.hidden_size, shape.rms_norm_eps)


class Network(nn.Module):
    """Token ids (batch, length) to logits; the output weights are the embedding's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = _Trunk(shape)
        frequencies = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
        angles = torch.outer(torch.arange(shape.max_position_embeddings).float(), frequencies).repeat(1, 2)
        # In float32 whatever the precision of the weights: rounded, neighbouring positions would become one.
        self.cos: Tensor
        self.sin: Tensor
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self._mask = torch.empty(0, 0)
        self._initialise()

    def _initialise(self) -> None:
        depth = (2 * self.shape.num_hidden_layers) ** -0.5
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            std = 0.02 if "embed" in name else parameter.shape[1] ** -0.5
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                std *= depth
            nn.init.normal_(parameter, std=std)

    def copy_in_bfloat16(self) -> Network:
        """A network of the same weights, rounded to bfloat16, whose rotations stay in float32."""
        copied = Network(self.shape).to(next(self.parameters()).device)
        for parameter in copied.parameters():
            parameter.data = parameter.data.bfloat16()
        copied.copy_weights(self)
        return copied

    @torch.no_grad()
    def copy_weights(self, other: Network) -> None:
        """Take the weights of another network of this shape, rounded to the precision of this one."""
        for mine, theirs in zip(self.parameters(), other.parameters(), strict=True):
            mine.copy_(theirs)

    def compile_blocks(self) -> None:
        """Compile the blocks for any batch and length: all share the program of one, which compiles in seconds."""
        for block in self.model.layers:
            block.compile(dynamic=True)

    def get_mask(self, length: int) -> Tensor:
        """What is added to the scores of a text (length, length): kept, as reading it is faster than making it."""
        weight = self.model.embed_tokens.weight
        is_alike = self._mask.dtype == weight.dtype and self._mask.device == weight.device
        if len(self._mask) < length or not is_alike:
            size = max(length, _MASK_LENGTH)
            self._mask = torch.full((size, size), _HIDDEN, dtype=weight.dtype, device=weight.device).triu(1)
        return self._mask[:length, :length]

    def compute_hidden(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The last hidden states (batch, length, hidden_size), normalised; `mask` is that of `get_mask`."""
        length = ids.shape[1]
        rope = (self.cos[:length], self.sin[:length])
        x: Tensor = self.model.embed_tokens(ids)
        for block in self.model.layers:
            x = block(x, rope, mask)
        return cast(Tensor, self.model.norm(x))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, length, vocab_size)."""
        hidden = self.compute_hidden(ids, self.get_mask(ids.shape[1]))
        return functional.linear(hidden, self.model.embed_tokens.weight)

    def compute_loss(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats over the targets (batch, length) that are not -100."""
        return self.compute_target_losses(self.compute_hidden(ids, self.get_mask(ids.shape[1])), targets).mean()

    def compute_target_losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy in nats of each target (batch, length) that is not -100, in their order, from the last
        hidden states; logits are computed for these positions only."""
        wanted = (targets.flatten() != -100).nonzero().squeeze(1)
        logits = functional.linear(hidden.flatten(0, 1)[wanted], self.model.embed_tokens.weight)
        return functional.cross_entropy(logits.float(), targets.flatten()[wanted], reduction="none")
