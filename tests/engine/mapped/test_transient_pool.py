"""Buffers for appends, which are later committed to the page cache."""

from __future__ import annotations

from engine.mapped.transient_pool import TransientStorePool

# Borrowed and returned buffers (docs/formats/files.md#allocation).


def test_lends_each_buffer_once():
    pool = TransientStorePool(2, 8192)
    first_buffer, second_buffer = pool.borrow(), pool.borrow()
    assert pool.borrow() is None
    first_buffer.view[0:3] = b"abc"
    assert bytes(second_buffer.view[0:3]) == bytes(3)
    assert len(second_buffer.view) == 8192
    first_buffer.give_back()
    first_buffer.give_back()
    assert pool.available == 1
    assert pool.borrow() is first_buffer


def test_locks_its_buffers_if_permitted(monkeypatch):
    requests = []
    monkeypatch.setattr(
        "engine.mapped.transient_pool.lock_memory", lambda view, description: requests.append((len(view), description))
    )
    assert TransientStorePool(3, 4096, lock=True).available == 3
    assert requests == [(4096, "a buffer of the transient store pool")] * 3
