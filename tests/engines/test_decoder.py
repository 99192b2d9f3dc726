"""Logits are those of transformers, however the ids are fed."""

from __future__ import annotations

import numpy as np
import pytest
from engine_checkpoints import SMALL, random_tensors, write_checkpoint, write_safetensors

from ferrule.engines.config import read_config
from ferrule.engines.decoder import TransformerDecoder
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.weights import fold_weights, read_safetensors

LENGTH = 90
TOLERANCE = 1e-4


def load(folder) -> TransformerDecoder:
    config = read_config(folder / "config.json")
    return TransformerDecoder(config, fold_weights(config, read_safetensors(folder / "model.safetensors")))


def new_cache(decoder: TransformerDecoder, places: int = 4, capacity: int = 128) -> KeyValueCache:
    cache = KeyValueCache(decoder.config)
    cache.reserve(places, capacity, [])
    return cache


def reference(folder, **shape):
    """A random model saved by transformers, the ids, and its logits for each position."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    name = shape.pop("name")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=272,
        hidden_size=128,
        intermediate_size=384,
        max_position_embeddings=512,
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=None,
        **shape,
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "norm" in parameter_name:
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        model.save_pretrained(folder)
        ids = np.random.default_rng(1).integers(0, 272, LENGTH).tolist()
        return ids, model(torch.tensor([ids])).logits[0].numpy()


SHAPES = {
    "qwen3": {
        "name": "Qwen3",
        "num_hidden_layers": 5,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "tie_word_embeddings": True,
    },
    "qwen3, untied, one head each": {
        "name": "Qwen3",
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 48,
        "tie_word_embeddings": False,
    },
    "llama": {
        "name": "Llama",
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "tie_word_embeddings": False,
    },
}


@pytest.fixture(scope="module", params=SHAPES, ids=lambda name: name.split(",")[0])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    ids, logits = reference(folder, **SHAPES[request.param])
    return load(folder), ids, logits


def test_one_chunk(model):
    decoder, ids, expected = model
    cache = new_cache(decoder)
    logits = decoder.extend(cache, 1, ids, 0, logits=True)
    np.testing.assert_allclose(logits[0], expected[-1], atol=TOLERANCE, rtol=0)


def test_one_id_at_a_time(model):
    decoder, ids, expected = model
    cache = new_cache(decoder)
    for position, token in enumerate(ids):
        logits = decoder.decode(cache, [token], [position])
        np.testing.assert_allclose(logits[0], expected[position], atol=TOLERANCE, rtol=0)


def test_chunks_then_steps(model):
    decoder, ids, expected = model
    cache = new_cache(decoder)
    assert decoder.extend(cache, 0, ids[:30], 0, logits=False) is None
    logits = decoder.extend(cache, 0, ids[30:70], 30, logits=True)
    np.testing.assert_allclose(logits[0], expected[69], atol=TOLERANCE, rtol=0)
    for position in range(70, LENGTH):
        logits = decoder.decode(cache, [ids[position]], [position])
        np.testing.assert_allclose(logits[0], expected[position], atol=TOLERANCE, rtol=0)


def test_a_ragged_batch(model):
    decoder, ids, expected = model
    cache = new_cache(decoder)
    positions = [70, 3, 0, 41]
    for place, position in enumerate(positions):
        if position:
            decoder.extend(cache, place, ids[:position], 0, logits=False)
    logits = decoder.decode(cache, [ids[position] for position in positions], positions)
    np.testing.assert_allclose(logits, expected[positions], atol=TOLERANCE, rtol=0)


def test_large_head_norms_do_not_overflow(tmp_path):
    """Scores far beyond exp()'s range: the softmax then looks for the highest first."""
    folder = write_checkpoint(tmp_path)
    tensors = random_tensors(SMALL)
    for name in tensors:
        if "q_norm" in name:
            tensors[name] = tensors[name] * 1000
    write_safetensors(folder / "model.safetensors", tensors)
    decoder = load(folder)
    assert not decoder._weights.layers[0].scores_are_small
    cache = new_cache(decoder)
    chunk = decoder.extend(cache, 0, list(range(30)), 0, logits=True).copy()
    for position in range(30):
        steps = decoder.decode(cache, [position], [position])
    assert np.isfinite(steps).all()
    np.testing.assert_allclose(steps, chunk, atol=1e-2)


def test_a_cache_keeps_its_places_when_it_grows(checkpoint):
    decoder = load(checkpoint)
    small, large = KeyValueCache(decoder.config), new_cache(decoder)
    small.reserve(1, 8, [])
    for cache in (small, large):
        decoder.extend(cache, 0, list(range(8)), 0, logits=False)
    small.reserve(3, 20, [8])
    small.move(0, 2, 8)
    small.restore(1, small.view(2, 8).copy(), 5)
    assert small.data.shape[1] >= 3
    np.testing.assert_array_equal(small.data[:, 2, :, :8], large.data[:, 0, :, :8])
    np.testing.assert_array_equal(small.data[:, 1, :, :5], large.data[:, 0, :, :5])
    assert not small.data[:, 1, :, 5:].any()
