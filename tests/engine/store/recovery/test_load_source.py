"""The engine's own reading of a store's files gives the same plan as the inspection's
(docs/formats/recovery.md#order).
"""

from __future__ import annotations

import json
from dataclasses import replace

import golden_stores
import pytest

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import CannotRead
from engine.files.layout import StorePaths
from engine.inspection import recovery as inspected
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery

STORES = [
    "clean-4.9.8",
    "crash-5.3.3",
    "crash-power-5.3.3",
    "multi-queue-ext-5.3.3",
    "batchcq-5.3.3",
    "queues-gone-5.3.3",
]


def config_of(name):
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    return from_mapping({"timerWheelEnable": False, **plan["config"]})[0]


@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize("name", STORES)
def test_both_sources_give_one_plan(golden, name, release):
    config = config_of(name)
    ours = recovery.plan(load_source.source(StorePaths(golden(name)), config, RealDisk()), release)
    with open_store(golden(name), config) as store:
        theirs = inspected.plan(store, release)
    looked_for = replace(ours, notes=theirs.notes, undispatched=theirs.undispatched, dropped=theirs.dropped)
    assert (ours.undispatched, ours.dropped) == (None, None)
    assert looked_for == theirs


def test_an_empty_directory_is_an_empty_store(tmp_path):
    source = load_source.source(StorePaths(tmp_path), MessageStoreConfig(), RealDisk())
    plan = recovery.plan(source)
    assert (plan.end_offset, plan.queues, plan.will_start, plan.changes_nothing) == (0, (), True, True)
    assert not list(tmp_path.iterdir())


def test_a_log_of_several_folders_is_read_in_the_order_of_its_names(tmp_path):
    for number, folder in enumerate(("b", "a", "b")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{number * 1024:020d}").write_bytes(bytes(1024))
    text = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    config = MessageStoreConfig(store_path_commit_log=text, mapped_file_size_commit_log=1024)
    source = load_source.source(StorePaths(tmp_path), config, RealDisk())
    assert [file.start_offset for file in source.log.files] == [0, 1024, 2048]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    disk = RealDisk()
    file = load_source.LoadedFile(str(tmp_path / "gone" / "x"), 0, 8, disk)
    (tmp_path / "gone").write_text("in the way")
    with pytest.raises(CannotRead, match="gone"):
        file.read(0, 8)
