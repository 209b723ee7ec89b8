"""Rebuilding from splits gives the same bytes as the engine's dispatch, whole or not at all, also after an earlier
run.
"""

from __future__ import annotations

import json
import shutil

import pytest
from dispatching import stored
from golden_stores import third_of_names
from raw_units import raw_log
from rebuilt_stores import InProcessRunner, dispatched, figures, rebuilt, tree

from engine.cli.pipeline_rebuild import store_labels
from engine.errors import StoreError, UsageError
from engine.pipeline import rebuild as module
from engine.pipeline import rebuild_files, rebuild_parts
from engine.pipeline.files import StorePlace
from engine.pipeline.rebuild import QueueTask, staged


def assert_same(store, tmp_path, split_bytes):
    by_engine, by_splits = tmp_path / "engine", tmp_path / "splits"
    theirs, ours = dispatched(store, by_engine), rebuilt(store, by_splits, split_bytes)
    assert stored(by_splits) == stored(by_engine)
    assert tree(by_splits) == tree(by_engine)
    assert figures(ours) == figures(theirs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine", "splits"]


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("name", third_of_names(1))
def test_every_golden_store_is_built_as_the_engine_builds_it(golden, tmp_path, name):
    assert_same(golden(name), tmp_path, 300_000)


@pytest.mark.parametrize("name", ["crash-flip-5.3.3", "multi-queue-ext-5.3.3", "batchcq-5.3.3", "lmq-5.3.3"])
@pytest.mark.parametrize("split_bytes", [40_000, 64 << 20])
def test_the_files_are_the_same_for_any_size_of_splits(golden, tmp_path, monkeypatch, name, split_bytes):
    monkeypatch.setattr(rebuild_parts, "ROWS", 50)
    monkeypatch.setattr(rebuild_files, "GROUP_BYTES_AT_ONCE", 3000)
    monkeypatch.setattr(rebuild_files, "MAX_OPEN_QUEUES", 2)
    monkeypatch.setattr(module, "RANGE_BYTES", 5000)
    assert_same(golden(name), tmp_path, split_bytes)


def test_damage_and_lost_units_shift_entries_as_they_do_for_the_engine(golden, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    log = sorted((store / "commitlog").iterdir())[0]
    with log.open("r+b") as file:
        for position in (5_000, 77_777, 300_000, 600_001):
            file.seek(position)
            file.write(b"\x13" * 700)
    (tmp_path / "out").mkdir()
    ours = rebuilt(store, tmp_path / "out" / "splits", 50_000)
    theirs = dispatched(store, tmp_path / "out" / "engine")
    assert stored(tmp_path / "out" / "splits") == stored(tmp_path / "out" / "engine")
    assert figures(ours) == figures(theirs)
    assert theirs.damaged >= 4


def test_splits_that_do_not_join_are_read_again_as_one(golden, tmp_path, monkeypatch):
    """A unit in a body, made for its place, can deceive a cut; then the file is one split."""
    real = module.read_split

    def deceived(split, **how):
        for block in real(split, **how):
            wrong = isinstance(block, module.SplitEnd) and split.start and split.stop < split.file_size
            yield module.SplitEnd(block.first_offset + 1, block.next_offset) if wrong else block

    monkeypatch.setattr(module, "read_split", deceived)
    assert_same(golden("clean-5.3.3"), tmp_path, 200_000)


def test_a_log_without_units_gives_an_empty_place(tmp_path):
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    (store / "commitlog" / f"{0:020d}").write_bytes(bytes(4096))
    (tmp_path / "in").mkdir()
    rebuilt(store, tmp_path / "in" / "new")
    assert list((tmp_path / "in" / "new").iterdir()) == []


def test_a_used_place_is_refused_and_left_alone(golden, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="new or empty"):
        rebuilt(golden("lmq-5.3.3"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failure_leaves_nothing(golden, tmp_path):
    class FailingRunner(InProcessRunner):
        def __call__(self, shares, work, schema):
            if any(isinstance(task, QueueTask) for share in shares for task in share):
                raise OSError(28, "No space left on device")
            return super().__call__(shares, work, schema)

    with pytest.raises(OSError, match="No space"):
        rebuilt(golden("clean-5.3.3"), tmp_path / "new", run=FailingRunner())
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_is_continued(golden, tmp_path, monkeypatch):
    store = golden("clean-5.3.3")

    class KilledRunner(InProcessRunner):
        def __call__(self, shares, work, schema):
            if any(isinstance(task, QueueTask) for share in shares for task in share):
                super().__call__(shares[:3], work, schema)
                raise KeyboardInterrupt
            return super().__call__(shares, work, schema)

    with monkeypatch.context() as patched:
        patched.setattr("engine.pipeline.rebuild.remove_folder_tree", lambda _staging: None)
        with pytest.raises(KeyboardInterrupt):
            rebuilt(store, tmp_path / "new", 300_000, KilledRunner())
    file = next(tmp_path.iterdir())
    parts = [path.name for path in (file / "work").rglob("*.json")]
    built = list((file / "done").iterdir())
    assert any((file / "tree").rglob("index/*"))
    assert built
    second = InProcessRunner()
    done = rebuilt(store, tmp_path / "new", 300_000, second)
    assert done.reused == len(parts) + len(built)
    assert not any(isinstance(task, module.PartTask) for task in second.done)
    theirs = dispatched(store, tmp_path / "engine")
    assert stored(tmp_path / "new") == stored(tmp_path / "engine")
    assert figures(done) == figures(theirs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine", "new"]


def test_each_of_several_stores_has_a_folder_of_its_own():
    places = [StorePlace("/f/a/store", "a", ()), StorePlace("/f/b/store", None, ()), StorePlace("/g/a/store", "a", ())]
    assert store_labels(places) == ["a", "b", "a-2"]
    assert store_labels(places[:1]) == [""]


def test_queue_offsets_that_jump_or_fall_go_where_the_engine_puts_them(tmp_path):
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    offsets = [0, 1, 5, 6, 3, 7, 0, 8, 400, 401]
    data = raw_log(*({"topic": b"T", "queue_offset": offset} for offset in offsets))
    (store / "commitlog" / f"{0:020d}").write_bytes(data.ljust(1 << 16, b"\0"))
    (tmp_path / "in").mkdir()
    for size in (1 << 20, 300):
        assert_same(store, tmp_path / "in", size)
        shutil.rmtree(tmp_path / "in")
        (tmp_path / "in").mkdir()


def test_output_of_another_plan_is_discarded(tmp_path):
    with staged(tmp_path / "out", "one", lambda: 1) as (staging, _):
        record = json.loads((staging / "plan.json").read_text())
    assert record == {"plan": "one", "begun": 1}
    path = tmp_path / ".out.rebuild"
    (path / "work").mkdir(parents=True)
    (path / "work" / "part").write_text("x")
    (path / "plan.json").write_text(json.dumps(record))
    with staged(tmp_path / "out", "one", lambda: 2) as (staging, begun):
        assert (begun, (staging / "work" / "part").exists()) == (1, True)
        second = staged(tmp_path / "out", "one", lambda: 3)
        with pytest.raises(StoreError, match="another rebuild"):
            second.__enter__()
    assert not path.exists()
    path.mkdir()
    (path / "plan.json").write_text(json.dumps(record))
    with staged(tmp_path / "out", "two", lambda: 2) as (staging, begun):
        assert (begun, list((staging / "work").iterdir())) == (2, [])
