"""The page cache of a store: per file for the log, in total for queues and index."""

from __future__ import annotations

from handmade_stores import HandmadeStore

from engine.errors import CannotRead
from engine.inspection import open_store
from engine.inspection.capsule_making import make_capsule
from engine.inspection.space import page_cache
from engine.mapped.page_residency import ResidencyUnknown


def _root(tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put(queue_id=number % 2, keys=f"k{number}")
    return store.write(tmp_path / "store")


def test_every_file_of_the_log_is_measured(tmp_path):
    with open_store(_root(tmp_path)) as store:
        actual_page_cache = page_cache.page_cache(store)
        sizes = [(file.name, file.size) for file in store.log.files]
    assert [(file.name, file.size) for file in actual_page_cache.files] == sizes
    assert [kind.kind for kind in actual_page_cache.kinds] == ["commitlog", "consumequeue", "index"]
    assert 0 < actual_page_cache.resident <= actual_page_cache.size
    assert all(0 <= share <= 1 for file in actual_page_cache.files for share in file.shares)


def test_a_deleted_file_is_left_out(tmp_path):
    root = _root(tmp_path)
    with open_store(root) as store:
        files = len(store.log.files)
        min((root / "commitlog").iterdir()).unlink()
        assert len(page_cache.page_cache(store).files) == files - 1


def test_a_system_without_the_call_gives_a_reason(tmp_path, monkeypatch):
    def refuse(_path, _reading):
        raise ResidencyUnknown("this system has no mincore")

    monkeypatch.setattr(page_cache, "page_map", refuse)
    with open_store(_root(tmp_path)) as store:
        actual_page_cache = page_cache.page_cache(store)
    assert actual_page_cache.files == ()
    assert "no mincore" in actual_page_cache.why


def test_an_unreadable_log_is_not_reported_as_empty(tmp_path, monkeypatch):
    """Space reported "CommitLog 0 B / 0 B" for a log without read permission."""
    page_map = page_cache.page_map

    def refuse(path, reading):
        if "commitlog" in str(path):
            raise CannotRead(f"{path}: cannot be read: Permission denied")
        return page_map(path, reading)

    monkeypatch.setattr(page_cache, "page_map", refuse)
    with open_store(_root(tmp_path)) as store:
        assert [kind.kind for kind in page_cache.page_cache(store).kinds] == ["consumequeue", "index"]


def test_of_a_capsule_nothing_is_known(tmp_path):
    """Space reported that no byte of a capsule's files was in memory."""
    with open_store(_root(tmp_path)) as store:
        make_capsule(store, tmp_path / "x.capsule", 1)
    with open_store(tmp_path / "x.capsule") as store:
        actual_page_cache = page_cache.page_cache(store)
    assert (actual_page_cache.files, actual_page_cache.why) == ((), "a capsule does not say what was in memory")
