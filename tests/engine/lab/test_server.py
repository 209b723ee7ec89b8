"""The lab's process by itself: what it answers, and what it does when whoever asked goes away."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_tasks import CannotUnpack

from engine.codec.encode import Message
from engine.errors import UsageError
from engine.frames import CannotTravel, pack, receive
from engine.lab.lab_store import LabStore
from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from engine.lab.server import Lab, serve
from engine.store.running_flags import DISK_FULL

TINY = PRESETS[3].config


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab()
    found.start(tmp_path / "lab", TINY, "5.3", 1 << 34)
    yield found
    found.close()


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
    seen = [mark.number for mark in lab.sample("pane").flushes]
    assert seen == sorted(set(seen))
    assert len(seen) >= 2
    assert [mark.number for mark in lab.sample("positions").flushes] == seen
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
    assert (step.before.dispatched, step.after.dispatched) == (0, answer.size)
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
    process.join(60)
    assert process.exitcode == 0
    again = LabStore.open(tmp_path / "lab")
    assert again.store.recovery_plan.exit == "normal"
    again.close()
