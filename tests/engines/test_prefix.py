"""Prefixes are found by ids, bounded in bytes, and replaced by what extends them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ferrule.engines.prefix import Prefix, PrefixStore, common_prefix


def prefix(*ids: int, key: str | None = None) -> Prefix:
    return Prefix(np.array(ids, np.int64), np.zeros((1, 2, len(ids), 4), np.float32), key)


def find(store: PrefixStore, *ids: int) -> tuple[int, tuple[int, ...]]:
    length, entry = store.find(np.array(ids, np.int64))
    return length, tuple(entry.ids) if entry else ()


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_prefix(one, other):
    expected = 0
    while expected < min(len(one), len(other)) and one[expected] == other[expected]:
        expected += 1
    assert common_prefix(np.array(one, np.int64), np.array(other, np.int64)) == expected


def test_the_longest_is_found():
    store = PrefixStore(10_000)
    for ids in ((1, 2, 3), (1, 2, 9, 9), (5,)):
        store.add(prefix(*ids))
    assert find(store, 1, 2, 9, 7) == (3, (1, 2, 9, 9))
    assert find(store, 1, 2, 3, 4) == (3, (1, 2, 3))
    assert find(store, 8) == (0, ())
    assert find(store) == (0, ())


def test_the_longer_of_two_is_kept():
    store = PrefixStore(10_000)
    store.add(prefix(1, 2))
    store.add(prefix(1, 2, 3))
    store.add(prefix(1))
    assert len(store) == 1
    assert store.size == prefix(1, 2, 3).size


def test_a_key_keeps_its_latest_only_and_its_own():
    store = PrefixStore(10_000)
    store.add(prefix(1, 2, key="a"))
    store.add(prefix(1, 2, 3, key="b"))
    assert len(store) == 2
    store.add(prefix(7, 8, key="a"))
    assert find(store, 1, 2, 3) == (3, (1, 2, 3))
    assert find(store, 7, 8) == (2, (7, 8))
    assert len(store) == 2


def test_the_least_recently_used_goes_first():
    store = PrefixStore(2 * prefix(0, 0).size)
    store.add(prefix(1, 1))
    store.add(prefix(2, 2))
    find(store, 1, 1)
    store.add(prefix(3, 3))
    assert find(store, 2, 2) == (0, ())
    assert find(store, 1, 1) == (2, (1, 1))
    assert store.size == 2 * prefix(0, 0).size


def test_what_can_not_fit_is_not_kept():
    store = PrefixStore(prefix(1).size)
    assert not store.fits(prefix(1, 2).size)
    store.add(prefix(1, 2))
    assert (len(store), store.size) == (0, 0)
