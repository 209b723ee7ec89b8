"""The lab's process: its answers, and its reaction when the client disappears."""

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
from engine.lab.pipe_frames import NotSendable, pack, receive
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


def test_statuses_accumulate_over_successive_loads(lab: Lab) -> None:
    lab.put(Message("T", b""))
    total = 1
    for producers in (1, 2):
        lab.load(LoadSettings(producers=producers, rate=2000))
        while lab.counts().messages < 50:
            pass
        total += lab.load(None).messages
    assert lab.sample().statuses == {"PUT_OK": total}
    assert lab.load(None).running is False


def test_a_paused_service_keeps_its_waiting_work(lab: Lab) -> None:
    lab.pause("reput")
    answer = lab.put(Message("T", b"not dispatched"))
    sample = lab.sample()
    assert (sample.services["reput"].paused, sample.services["reput"].waiting_bytes) == (True, answer.size)
    step = lab.step("reput")
    assert (step.positions_before.dispatched, step.positions_after.dispatched) == (0, answer.size)
    state = lab.sample().services["reput"]
    assert (state.moved, state.unit, state.waiting_bytes) == (1, "units", 0)


def test_a_full_disk_is_reported_with_its_simulated_size(lab: Lab) -> None:
    store = lab._open
    assert lab.sample().trouble == ""
    store.flags.raise_flag(DISK_FULL, "the disk of the log is 94% full")
    assert "94% full" in lab.sample().trouble
    assert "seems to have 16.0 GiB" in lab.sample().trouble
    assert lab.put(Message("T", b"")).status == "SERVICE_NOT_AVAILABLE"


@pytest.mark.parametrize("how", ["the asker goes away", "terminated"])
def test_a_process_without_its_client_closes_its_store_cleanly(tmp_path: Path, how: str) -> None:
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
    assert isinstance(ask(5, "put", CannotUnpack())[1], NotSendable), "it lives on, with its store open"
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


def test_changes_since_opening_are_backed_up_and_can_be_undone(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    files_before = golden_stores.fingerprint(root)
    lab = Lab()
    opened = lab.open_store(root, settled, "5.3")
    assert opened.kept is not None
    assert opened.kept.parent == root.parent
    assert lab._open.put_message(Message("Orders", b"one more")).ok
    lab._open.delete_topics(["Orders"])
    assert not (root / "consumequeue" / "Orders").exists()
    lab.close()
    assert main(["recover", str(root), "--undo", str(opened.kept), "--yes"]) == 0
    assert golden_stores.changes(files_before, golden_stores.fingerprint(root)) == []


def test_a_cleanly_closed_store_needs_no_backup_folder(root: Path) -> None:
    own_store = OwnStore(root, config(root), "5.3")
    assert own_store.kept is None
    own_store.close()
    assert list(root.parent.iterdir()) == [root]


def test_a_store_without_its_log_is_left_alone(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "commitlog")
    (root / "abort").write_text("4711")
    files_before = golden_stores.fingerprint(root)
    with pytest.raises(LogIsEmpty, match="is its disk mounted"):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(files_before, golden_stores.fingerprint(root)) == []


def test_a_failed_opening_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    files_before = golden_stores.fingerprint(root)
    monkeypatch.setattr("engine.services.store_services.StoreServices.start", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(files_before, golden_stores.fingerprint(root)) == []
    assert list(root.parent.iterdir()) == [root]
