"""Bytes kept by content hash."""

from __future__ import annotations

import pickle

import pytest

from ferrule.blobs import BlobStore, hash_blob


@pytest.mark.parametrize("is_in_folder", [False, True])
def test_a_store_goes_into_another_process(tmp_path, is_in_folder):
    store = BlobStore(tmp_path if is_in_folder else None)
    name = store.put(b"before")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.get(name) == b"before"
    assert copy.put(b"after") == hash_blob(b"after")
    # A store in memory is a copy from then on; a folder is shared.
    assert store.get(hash_blob(b"after")) == (b"after" if is_in_folder else None)


def test_the_oldest_blobs_leave_first_and_the_last_one_stays():
    store = BlobStore(limit=10)
    names = [store.put(data) for data in (b"1234", b"56789", b"abc")]
    assert [store.get(name) for name in names] == [None, b"56789", b"abc"]
    assert store.get(store.put(b"longer than the limit")) == b"longer than the limit"


def test_a_name_that_is_a_path_is_not_opened(tmp_path):
    (tmp_path / "outside").write_bytes(b"secret")
    store = BlobStore(tmp_path / "blobs")
    store.put(b"x")
    assert store.get("../outside") is None
