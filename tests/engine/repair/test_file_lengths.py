"""Log files that were cut, or have bytes behind their end, get the length of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import repair_rounds
from handmade_stores import LOG_SIZE, HandmadeStore, healthy
from planted_faults import patch

from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import plan_repairs
from engine.rules.findings import Finding


@pytest.fixture
def store() -> HandmadeStore:
    return healthy(count=90)


def log_file(root: Path, start: int) -> Path:
    return root / "commitlog" / f"{start:020d}"


def mended(root: Path) -> list[str]:
    """Mend the store, and return the names of the repairs."""
    repairs = plan_repairs(root, None, "5.3")
    apply_patches(root, PatchList(repairs.patches), RealDisk())
    with open_store(root) as opened:
        assert plan(opened, "5.3").will_start
        assert "CL07" not in {item.id for item in check(opened) if isinstance(item, Finding)}
    return [repair.name for repair in repairs.repairs]


def test_a_file_between_others_that_was_cut_gets_placeholders_for_its_lost_messages(tmp_path, store):
    root = store.write(tmp_path / "store")
    before = repair_rounds.units_of(root)
    unit = next(unit for unit in store.units if unit.offset > LOG_SIZE + 1000)
    os.truncate(log_file(root, LOG_SIZE), unit.offset + 20 - LOG_SIZE)
    with open_store(root) as opened:
        assert not plan(opened, "5.3").will_start
    assert mended(root) == ["lengths", "log", "queues"]
    hits = [repair_rounds.Hit(unit.offset, 2 * LOG_SIZE, "cut")]
    assert repair_rounds.wrongs(before, repair_rounds.units_of(root), hits) == []


def test_the_last_file_that_was_cut_gets_zeros(tmp_path, store):
    root = store.write(tmp_path / "store")
    last = max((root / "commitlog").iterdir())
    end = store.units[-1].offset + store.units[-1].size - int(last.name)
    os.truncate(last, end)
    assert mended(root) == ["lengths"]
    assert last.read_bytes()[end:] == bytes(LOG_SIZE - end)


@pytest.mark.parametrize("surplus", [bytes(100), b"from elsewhere"])
def test_what_stands_behind_the_end_of_a_file_is_cut_off(tmp_path, store, surplus):
    root = store.write(tmp_path / "store")
    content = log_file(root, 0).read_bytes()
    log_file(root, 0).write_bytes(content + surplus)
    repairs = plan_repairs(root, None, "5.3").repairs
    assert bool(repairs[0].costs) == any(surplus)
    assert mended(root) == ["lengths"]
    assert log_file(root, 0).read_bytes() == content


def test_bytes_behind_the_end_of_the_last_file_stay_if_they_may_be_messages(tmp_path, store):
    root = store.write(tmp_path / "store")
    last = max((root / "commitlog").iterdir())
    last.write_bytes(last.read_bytes() + b"a message of a longer file")
    assert [repair.name for repair in plan_repairs(root, None, "5.3").repairs] == []


@pytest.mark.parametrize("surplus", [-1000, 100, 8192])
def test_the_configuration_tells_the_length_of_an_only_file(tmp_path, surplus):
    """No broker started with it, and nothing was offered: most stores of less than 1 GiB have one file."""
    root = healthy(count=20).write(tmp_path / "store")
    os.truncate(log_file(root, 0), 2 * LOG_SIZE + surplus)
    if surplus == 100:
        patch(log_file(root, 0), 2 * LOG_SIZE, b"x" * surplus)
    config = MessageStoreConfig(mapped_file_size_commit_log=2 * LOG_SIZE, given=frozenset({"mappedFileSizeCommitLog"}))
    plan = plan_repairs(root, config, "5.3")
    assert not plan.current.start.will_start
    assert [repair.name for repair in plan.repairs] == ["lengths"]
    assert plan.mended.start.will_start
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert log_file(root, 0).stat().st_size == 2 * LOG_SIZE


def test_an_only_file_that_a_broker_may_have_made_stays(tmp_path):
    """The configuration may be that of another broker: a file of whole pages is shorter than it says by its choice."""
    root = healthy(count=20).write(tmp_path / "store")
    config = MessageStoreConfig(mapped_file_size_commit_log=4 * LOG_SIZE, given=frozenset({"mappedFileSizeCommitLog"}))
    assert plan_repairs(root, config, "5.3").repairs == ()
