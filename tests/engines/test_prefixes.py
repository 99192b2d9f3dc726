"""Prefixes are found by ids, bounded in bytes, and replaced by what extends them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ferrule.engines.prefixes import PrefixStore, common_prefix

ROOM = 1_000_000


def keys_values(ids) -> np.ndarray:
    """Contents that tell which ids they belong to, all ids before a position included, as in a model."""
    sums = np.cumsum(np.array(ids, np.float32) + 1)
    return np.broadcast_to(sums[None, None, :, None], (2, 2, len(ids), 4)).astype(np.float32)


def add(store: PrefixStore, *ids: int) -> None:
    state = keys_values(ids)
    store.add(np.array(ids, np.int64), state.nbytes, lambda _: state.copy())


def find(store: PrefixStore, *ids: int) -> tuple[int, tuple[int, ...]]:
    length, entry = store.find(np.array(ids, np.int64))
    if entry is None:
        return length, ()
    np.testing.assert_array_equal(entry.state, keys_values(entry.ids))
    return length, tuple(entry.ids.tolist())


def shared(one, other) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def size_of(*ids: int) -> int:
    store = PrefixStore(ROOM)
    add(store, *ids)
    return store.size


IDS = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_prefix(one, other):
    assert common_prefix(np.array(one, np.int64), np.array(other, np.int64)) == shared(one, other)


@given(st.lists(IDS, min_size=1, max_size=12), IDS)
def test_what_was_added_is_found_with_its_own_contents(added, ids):
    store = PrefixStore(ROOM)
    for each in added:
        add(store, *each)
    length, entry = find(store, *ids)
    assert length == max(shared(each, ids) for each in added)
    assert length == 0 or list(entry) in added


@given(st.lists(IDS, max_size=30), st.integers(0, 1500))
def test_the_bound_holds_and_contents_stay_right(added, limit):
    store = PrefixStore(limit)
    for ids in added:
        add(store, *ids)
        assert store.size <= limit
        find(store, *ids)
    store.clear()
    assert (len(store), store.size) == (0, 0)


def test_the_longest_is_found():
    store = PrefixStore(ROOM)
    for ids in ((1, 2, 3), (1, 2, 9, 9), (5,)):
        add(store, *ids)
    assert find(store, 1, 2, 9, 7) == (3, (1, 2, 9, 9))
    assert find(store, 1, 2, 3, 4) == (3, (1, 2, 3))
    assert find(store, 8) == (0, ())
    assert find(store) == (0, ())


def test_the_longer_of_two_is_kept():
    store = PrefixStore(ROOM)
    add(store, *range(8))
    add(store, *range(10))  # in the room that the first has left
    add(store, *range(40))
    add(store, 0)
    assert len(store) == 1
    assert find(store, *range(50)) == (40, tuple(range(40)))


def test_the_least_recently_used_goes_first():
    store = PrefixStore(2 * size_of(0, 0))
    add(store, 1, 1)
    add(store, 2, 2)
    find(store, 1, 1)
    add(store, 3, 3)
    assert find(store, 2, 2) == (0, ())
    assert find(store, 1, 1) == (2, (1, 1))
    assert store.size == 2 * size_of(0, 0)


def test_what_can_not_fit_is_not_kept():
    store = PrefixStore(size_of(1))
    add(store, 1, 2)
    assert (len(store), store.size) == (0, 0)
