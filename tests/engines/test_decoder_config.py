"""A config that is read is one that is computed as it says."""

from __future__ import annotations

import json

import pytest
from engine_checkpoints import SMALL, random_tensors, write_checkpoint

from ferrule.engines.config import DecoderConfig, read_config
from ferrule.engines.weights import fold_weights
from ferrule.errors import EngineError


def config_file(tmp_path, **changes):
    raw = {"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True} | SMALL | changes
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in raw.items() if value != "absent"}))
    return path


def test_reads_both_spellings_of_rope(tmp_path):
    old = read_config(config_file(tmp_path, rope_theta=5e5))
    new = read_config(config_file(tmp_path, rope_parameters={"rope_type": "default", "rope_theta": 5e5}))
    assert old == new
    assert old.rope_theta == 5e5


def test_head_dim_and_kv_heads_have_the_field_s_defaults(tmp_path):
    config = read_config(config_file(tmp_path, head_dim="absent", num_key_value_heads="absent"))
    assert (config.head_dim, config.kv_heads) == (4, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "rope_type 'llama3'"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "layer_types"),
        ({"hidden_size": "absent"}, "lacks 'hidden_size'"),
        ({"hidden_size": "wide"}, "wrong type"),
        ({"num_attention_heads": 3}, "share 2 key-value heads"),
        ({"head_dim": 7}, "odd"),
        ({"num_hidden_layers": -1}, "layers must be at least 1"),
    ],
)
def test_refuses_by_name(tmp_path, changes, message):
    with pytest.raises(EngineError, match=message):
        read_config(config_file(tmp_path, **changes))


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_refuses_what_is_not_a_config(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(EngineError, match=r"config\.json"):
        read_config(tmp_path / "config.json")


def test_names_a_missing_and_a_misshapen_tensor(tmp_path):
    config: DecoderConfig = read_config(write_checkpoint(tmp_path) / "config.json")
    tensors = random_tensors(SMALL)
    del tensors["model.layers.1.self_attn.k_norm.weight"]
    with pytest.raises(EngineError, match=r"lack model\.layers\.1\.self_attn\.k_norm\.weight"):
        fold_weights(config, tensors)
    tensors = random_tensors(SMALL)
    tensors["model.norm.weight"] = tensors["model.norm.weight"][:-1]
    with pytest.raises(EngineError, match=r"model\.norm\.weight has shape \(15,\)"):
        fold_weights(config, tensors)
