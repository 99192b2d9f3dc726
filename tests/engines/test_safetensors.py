"""The reader gives what was written, and refuses what lies outside the file."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from engine_checkpoints import write_safetensors
from hypothesis import given
from hypothesis import strategies as st

from ferrule.engines.weights import read_safetensors
from ferrule.errors import EngineError


def write_raw(path, header: object, data: bytes = b"", length: int | None = None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def test_reads_what_was_written(tmp_path):
    tensors = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scalar": np.float32(3).reshape(()),
        "none": np.zeros((0, 4), np.float32),
    }
    write_safetensors(tmp_path / "x", tensors)
    read = read_safetensors(tmp_path / "x")
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(read[name], tensor)
        assert read[name].dtype == np.float32
        assert read[name].shape == tensor.shape


def test_half_types_become_float32(tmp_path):
    half = np.array([1.5, -2.0], "<f2").tobytes()
    brain = np.array([0x3FC0, 0xC000], "<u2").tobytes()
    header = {
        "__metadata__": {"format": "pt"},
        "half": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]},
        "brain": {"dtype": "BF16", "shape": [2], "data_offsets": [4, 8]},
    }
    read = read_safetensors(write_raw(tmp_path / "x", header, half + brain))
    np.testing.assert_array_equal(read["half"], np.float32([1.5, -2]))
    np.testing.assert_array_equal(read["brain"], np.float32([1.5, -2]))


def test_agrees_with_the_safetensors_package(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    tensors = {"a": np.random.default_rng(0).normal(size=(3, 5)).astype(np.float16)}
    numpy_files.save_file(tensors, tmp_path / "x")
    np.testing.assert_array_equal(read_safetensors(tmp_path / "x")["a"], tensors["a"])


def entry(**changes: object) -> dict[str, object]:
    return {"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"{not json", "header is not JSON"),
        (b"[" * 100_000, "header is not JSON"),
        ([], "not an object"),
        ({"t": 3}, "needs a dtype"),
        (entry(data_offsets=[0]), "needs a dtype"),
        (entry(dtype="I64", shape=[1]), "type I64"),
        (entry(dtype="T5"), "unknown type T5"),
        (entry(shape=[-2]), "impossible shape"),
        (entry(shape=["2"]), "impossible shape"),
        (entry(data_offsets=[0, 16], shape=[4]), "lies at bytes 0 to 16"),
        (entry(data_offsets=[-8, 0]), "lies at bytes -8"),
        (entry(data_offsets=[8, 0]), "lies at bytes 8 to 0"),
        (entry(shape=[3]), "does not take 8 bytes"),
        (entry(shape=[2**40, 2**40]), "does not take 8 bytes"),
        (entry() | {"again": entry()["t"]}, "'again' does not begin where|'t' does not begin where"),
        (entry(shape=[1], data_offsets=[4, 8]), "does not begin where"),
        (entry(shape=[1], data_offsets=[0, 4]), "4 bytes after the last tensor"),
    ],
)
def test_refuses_a_broken_header(tmp_path, header, message):
    path = write_raw(tmp_path / "x", header, bytes(8))
    with pytest.raises(EngineError, match=message):
        read_safetensors(path)


@pytest.mark.parametrize("raw", [b"", b"\x01", (2**63).to_bytes(8, "little") + b"{}"])
def test_refuses_what_is_not_such_a_file(tmp_path, raw):
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(EngineError, match="not a safetensors file"):
        read_safetensors(tmp_path / "x")


def test_says_which_file_is_missing(tmp_path):
    with pytest.raises(EngineError, match="No such file"):
        read_safetensors(tmp_path / "missing")


@given(raw=st.binary(max_size=60), shape=st.lists(st.integers(-1, 3), max_size=3), start=st.integers(-2, 20))
def test_arbitrary_bytes_are_read_or_refused(tmp_path_factory, raw, shape, start):
    path = tmp_path_factory.mktemp("fuzz") / "x"
    size = 4 * math.prod(shape)
    write_raw(path, entry(shape=shape, data_offsets=[start, start + size]), raw)
    for content in (path.read_bytes(), raw):
        path.write_bytes(content)
        try:
            read_safetensors(path)
        except EngineError:
            continue
