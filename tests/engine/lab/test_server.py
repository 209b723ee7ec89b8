"""The lab's process by itself: what it answers, and what it does when whoever asked goes away."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import golden_stores
import pytest
from handmade_stores import healthy
from worker_tasks import CannotUnpack

from engine.cli.main import main
from engine.codec.encode import Message
from engine.errors import UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.lab.lab_store import LabStore
from engine.lab.load_settings import LoadSettings
from engine.lab.pipe_frames import CannotTravel, pack, receive
from engine.lab.presets import PRESETS
from engine.lab.server import Lab, OwnStore, serve
from engine.store.recovery.empty_log import LogIsEmpty
from engine.store.running_flags import DISK_FULL

TINY = PRESETS[3].config


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    actual_lab = Lab()
    actual_lab.start(tmp_path / "lab", TINY, "5.3", 1 << 34)
    yield actual_lab
    actual_lab.close()


def test_one_process_holds_one_store(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="open in this lab already"):
        lab.start(tmp_path / "other", TINY, "5.3", 1 << 34)
    lab.close()
    with pytest.raises(UsageError, match="no store is open"):
        lab.sample()


def test_each_reader_sees_every_flush_once(lab: Lab) -> None:
    for reader in ("pane", "positions"):
        assert lab.sample(reader).flushes == ()
    for body in (b"one", b"two"):
        lab.put(Message("T", body))
        lab.flush()
    numbers = [mark.number for mark in lab.sample("pane").flushes]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 2
    assert [mark.number for mark in lab.sample("positions").flushes] == numbers
    assert lab.sample("pane").flushes == ()


def test_statuses_go_on_over_loads_that_follow_one_another(lab: Lab) -> None:
    lab.put(Message("T", b""))
    total = 1
    for producers in (1, 2):
        lab.load(LoadSettings(producers=producers, rate=2000))
        while lab.counts().messages < 50:
            pass
        total += lab.load(None).messages
    assert lab.sample().statuses == {"PUT_OK": total}
    assert lab.load(None).running is False


def test_a_paused_service_keeps_what_waits(lab: Lab) -> None:
    lab.pause("reput")
    answer = lab.put(Message("T", b"not dispatched"))
    sample = lab.sample()
    assert (sample.services["reput"].paused, sample.services["reput"].waiting_bytes) == (True, answer.size)
    step = lab.step("reput")
    assert (step.positions_before.dispatched, step.positions_after.dispatched) == (0, answer.size)
    state = lab.sample().services["reput"]
    assert (state.moved, state.unit, state.waiting_bytes) == (1, "units", 0)


def test_a_full_disk_is_told_with_the_size_it_seems_to_have(lab: Lab) -> None:
    store = lab._open
    assert lab.sample().trouble == ""
    store.flags.raise_flag(DISK_FULL, "the disk of the log is 94% full")
    assert "94% full" in lab.sample().trouble
    assert "seems to have 16.0 GiB" in lab.sample().trouble
    assert lab.put(Message("T", b"")).status == "SERVICE_NOT_AVAILABLE"


@pytest.mark.parametrize("how", ["the asker goes away", "terminated"])
def test_a_process_that_is_let_go_closes_its_store_in_order(tmp_path: Path, how: str) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()

    def ask(number: int, verb: str, *args: object) -> tuple[Any, Any]:
        ours.send_bytes(pack(number, verb, *args))
        answer = receive(ours)
        assert (answer.number, answer.kind) == (number, "end")
        value, error = answer.content()
        return value, error

    assert ask(1, "start", tmp_path / "lab", TINY, "5.3", 1 << 34)[1] is None
    assert ask(2, "load", LoadSettings(producers=2))[0].running
    assert "knows no 'tea'" in str(ask(3, "tea")[1])
    assert isinstance(ask(4, "_bank")[1], UsageError)
    assert isinstance(ask(5, "put", CannotUnpack())[1], CannotTravel), "it lives on, with its store open"
    assert ask(6, "counts")[0].running
    if how == "terminated":
        process.terminate()
    else:
        ours.close()
    process.join(200)
    assert process.exitcode == 0
    repeated = LabStore.open(tmp_path / "lab")
    assert repeated.store.recovery_plan.exit == "normal"
    repeated.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return healthy().write(tmp_path / "store")


def config(root: Path):
    with open_store(root) as store:
        return derived_config(store)


def test_what_opening_changes_is_kept_and_all_of_it_comes_back(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    lab = Lab()
    opened = lab.open_store(root, settled, "5.3")
    assert opened.kept is not None
    assert opened.kept.parent == root.parent
    assert lab._open.put_message(Message("Orders", b"one more")).ok
    lab._open.delete_topics(["Orders"])
    assert not (root / "consumequeue" / "Orders").exists()
    lab.close()
    assert main(["recover", str(root), "--undo", str(opened.kept), "--yes"]) == 0
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_store_that_was_closed_well_needs_no_folder(root: Path) -> None:
    own = OwnStore(root, config(root), "5.3")
    assert own.kept is None
    own.close()
    assert list(root.parent.iterdir()) == [root]


def test_a_store_whose_log_is_gone_stays_as_it_is(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "commitlog")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    with pytest.raises(LogIsEmpty, match="is its disk mounted"):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_where_opening_fails_nothing_was_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    monkeypatch.setattr("engine.services.store_services.StoreServices.start", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert list(root.parent.iterdir()) == [root]
