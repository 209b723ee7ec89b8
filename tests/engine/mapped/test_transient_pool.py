"""Buffers that appends go to before they are handed to the page cache."""

from __future__ import annotations

from engine.mapped.transient_pool import TransientStorePool

# Buffers lent and given back (docs/formats/files.md#allocation).


def test_lends_each_buffer_once():
    pool = TransientStorePool(2, 8192)
    first, second = pool.borrow(), pool.borrow()
    assert pool.borrow() is None
    first.view[0:3] = b"abc"
    assert bytes(second.view[0:3]) == bytes(3)
    assert len(second.view) == 8192
    first.give_back()
    first.give_back()
    assert pool.available == 1
    assert pool.borrow() is first


def test_locks_its_buffers_where_it_may_and_goes_on_where_it_may_not(monkeypatch):
    requests = []
    monkeypatch.setattr(
        "engine.mapped.transient_pool.lock_memory", lambda view, what: requests.append((len(view), what))
    )
    assert TransientStorePool(3, 4096, lock=True).available == 3
    assert requests == [(4096, "a buffer of the transient store pool")] * 3
