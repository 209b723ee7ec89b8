"""A closed store refuses every operation. The test goes through every name of the class, so no new method is
forgotten.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_units import raw_unit

from engine.codec.encode import encode_batch
from engine.codec.message_columns import MessageColumns
from engine.config import from_mapping
from engine.errors import NotWriteable, StoreClosed
from engine.mapped.disk import RealDisk
from engine.message_store import Message, MessageStore
from engine.store.commit_log import CommitLog
from engine.store.put_message import PutMessageStatus
from engine.store.put_raw_units import append_replicated, append_units
from engine.store.running_flags import NOT_WRITEABLE

SETTINGS = from_mapping(
    {"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 2000, "maxHashSlotNum": 50, "maxIndexNum": 400}
)[0]
UNIT = raw_unit()
MANY = [Message("Orders", b"late", queue_id=number % 2) for number in range(20)]
BATCH = MANY[0].changed(body=encode_batch(MANY[:1]))
Call = Callable[[Any], Any]


def columns() -> MessageColumns:
    return MessageColumns(["Orders"], b"late", np.array([4], np.int32))


def units() -> tuple[Any, Any, Any]:
    return np.frombuffer(UNIT, np.uint8), np.array([len(UNIT)]), np.array([0])


INFORMATION: dict[str, Call] = {
    "closed": lambda store: store.closed,
    "flags": lambda store: store.flags.why,
    "positions": lambda store: store.positions(),
}
"""What is known without the files: it stays as it was at the end."""
LIFE: dict[str, Call] = {"close": lambda store: store.close(), "abandon": lambda store: store.abandon()}
"""Does nothing a second time."""
PUTS: dict[str, Call] = {
    "put_message": lambda store: store.put_message(Message("Orders", b"late")),
    "put_messages": lambda store: store.put_messages(MANY)[-1],
    "append_columns": lambda store: store.append_columns(columns())[0],
    "put_batch": lambda store: store.put_batch(MANY[:1]),
    "put_encoded_batch": lambda store: store.put_encoded_batch(BATCH),
}
"""Answers with a status, as a broker does."""
REFUSED: dict[str, Call] = {
    "offset_in_queue_by_time": lambda store: store.offset_in_queue_by_time("Orders", 0, 0),
    "query_message": lambda store: store.query_message("Orders", "key"),
    "query_by_unique_key": lambda store: store.query_by_unique_key("Orders", "key"),
    "query_by_offset_id": lambda store: store.query_by_offset_id("7F00000100002A9F0000000000000000"),
    "look_message_by_offset": lambda store: store.look_message_by_offset(0),
    "stream": lambda store: list(store.stream("Orders", 0)),
    "min_offset_in_queue": lambda store: store.min_offset_in_queue("Orders", 0),
    "max_offset_in_queue": lambda store: store.max_offset_in_queue("Orders", 0),
    "counters": lambda store: store.counters(),
    "put_times": lambda store: store.put_times(),
    "parts": lambda store: store.parts,
    "tables": lambda store: store.tables,
    "flush": lambda store: store.flush(),
    "wait_dispatched": lambda store: store.wait_dispatched(),
    "delete_topics": lambda store: store.delete_topics(["Orders"]),
    "services": lambda store: store.services,
    "troubles": lambda store: store.troubles(),
}
NOTHING: dict[str, Call] = {"get_message": lambda store: store.get_message("g", "Orders", 0, 0)}
"""None, as documented."""


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def second_owner(tmp_path: Path) -> Iterator[tuple[MessageStore, MessageStore]]:
    """Yield a closed store and another store that has its directory open. The second store's messages must survive
    the test.
    """
    closed_store = MessageStore(tmp_path, SETTINGS)
    for number in range(10):
        assert closed_store.put_message(Message("Orders", b"of the first %d" % number)).ok
    closed_store.close()
    with MessageStore(tmp_path, SETTINGS, services=False) as owner:
        result = owner.put_message(Message("Orders", b"of the second", keys="key"))
        assert result.append is not None
        owner.flush()
        assert owner.wait_dispatched()
        files_before = bytes_of(tmp_path)
        yield closed_store, owner
        assert bytes_of(tmp_path) == files_before, "a closed store reached the files of the next owner"
        unit = owner.look_message_by_offset(result.append.physical_offset)
        assert unit is not None
        assert unit.body == b"of the second"
    with MessageStore(tmp_path, SETTINGS) as reopened:
        assert reopened.recovery_plan.exit == "normal"
        assert reopened.max_offset_in_queue("Orders", 0) == 11


def test_every_name_of_the_class_is_classified() -> None:
    """``append_blank``, ``flush``, ``delete_topics`` and the queries did not check whether the store is closed, and
    overwrote what the next owner had flushed. Every name must be in one of the tables here.
    """
    public = {name for name in dir(MessageStore) if not name.startswith("_")}
    assert public == {*INFORMATION, *LIFE, *PUTS, *REFUSED, *NOTHING}


def test_a_closed_store_refuses_every_call(second_owner: tuple[MessageStore, MessageStore]) -> None:
    closed, _ = second_owner
    for name, call in PUTS.items():
        assert call(closed).status is PutMessageStatus.SERVICE_NOT_AVAILABLE, name
    for call in REFUSED.values():
        with pytest.raises(StoreClosed, match="the store is closed"):
            call(closed)
    for call in NOTHING.values():
        assert call(closed) is None
    with pytest.raises(StoreClosed), closed:
        pass
    for call in LIFE.values():
        call(closed)
    assert closed.closed
    assert closed.flags.why == ""
    assert closed.positions().dispatched == closed.positions().wrote > 0


@pytest.mark.parametrize("end", ["close", "abandon"])
def test_parts_of_a_closed_store_reach_no_file(tmp_path: Path, end: str) -> None:
    """A caller that still has a part of a closed store cannot write with it, because the part's disk is closed."""
    closed_store = MessageStore(tmp_path, SETTINGS)
    closed_store.put_message(Message("Orders", b"x"))
    assert closed_store.wait_dispatched()
    parts = closed_store.parts
    getattr(closed_store, end)()
    with MessageStore(tmp_path, SETTINGS, services=False):
        files_before = bytes_of(tmp_path)
        for work in (
            lambda: parts.queues.delete_topic("Orders"),
            lambda: parts.tables.create_topic("Late"),
            lambda: parts.files.create(1 << 17),
            lambda: parts.files.files[0].append(b"late"),
            lambda: parts.disk.replace(tmp_path / "checkpoint", tmp_path / "abort"),
        ):
            with pytest.raises(OSError, match="the store is closed") as refused:
                work()
            assert refused.value.errno == errno.EBADF
        assert not parts.disk.remove_folder(tmp_path / "config")
        parts.flags.raise_flag(NOT_WRITEABLE, "late")
        parts.flags.clear(NOT_WRITEABLE)
        assert parts.commit_log.put_message(Message("Orders", b"late")).status.name == "SERVICE_NOT_AVAILABLE"
        assert bytes_of(tmp_path) == files_before


def test_closing_the_disk_waits_for_running_operations(tmp_path: Path) -> None:
    """Between the check and the action of one thread, no other thread releases the lock."""
    disk = RealDisk()
    begun, go, shut = threading.Event(), threading.Event(), threading.Event()

    class SlowPath(type(tmp_path)):  # type: ignore[misc]
        def unlink(self, missing_ok: bool = False) -> None:
            begun.set()
            assert go.wait(60)
            super().unlink(missing_ok)

    (tmp_path / "file").write_bytes(b"x")
    deletes = threading.Thread(target=lambda: disk.delete(SlowPath(tmp_path / "file")), daemon=True)
    deletes.start()
    assert begun.wait(60)
    shuts = threading.Thread(target=lambda: (disk.shut(), shut.set()), daemon=True)
    shuts.start()
    assert not shut.wait(0.05)
    go.set()
    shuts.join(60)
    deletes.join(60)
    assert shut.is_set()
    assert not (tmp_path / "file").exists()
    with pytest.raises(OSError, match="the store is closed"):
        disk.write_file(tmp_path / "file", b"late")


APPENDS: dict[str, Call] = {
    "put_message": lambda log: log.put_message(Message("Orders", b"late")),
    "put_message, ruled": lambda log: log.put_message(Message("Orders", b"late", properties={"DELAY": "1"})),
    "put_in_python": lambda log: log.put_in_python(Message("Orders", b"late")),
    "put_messages": lambda log: log.put_messages(MANY)[0],
    "put_messages, few": lambda log: log.put_messages(MANY[:2])[0],
    "append_columns": lambda log: log.append_columns(columns())[0],
    "put_batch": lambda log: log.put_batch(MANY[:1]),
    "put_encoded_batch": lambda log: log.put_encoded_batch(BATCH),
    "append_raw": lambda log: log.append_raw(UNIT),
    "append_units": lambda log: append_units(log, *units()),
    "append_replicated": lambda log: append_replicated(log, log.wrote, UNIT, 0),
    "append_blank": lambda log: log.append_blank(),
    "begin_at": lambda log: log.begin_at(0),
}
PASSIVE = {
    "ask",
    "close",
    "failed",
    "forget_topic",
    "refusal",
    "refuse",
    "set_max_message_size",
    "compiled_put",  # objects that put, not puts themselves
    "ask_copy",
    "follow",
    "begin_append",
    "place",
    "room_for",
    "topic",  # parts of the above, called under the lock
}


def test_every_way_to_append_is_listed() -> None:
    public = {name for name in dir(CommitLog) if not name.startswith("_") and callable(getattr(CommitLog, name))}
    assert public - PASSIVE == {name.partition(",")[0] for name in APPENDS} - {"append_units", "append_replicated"}


class HeldLock:
    """The append lock. The thread named ``late`` is delayed before it gets the lock, as if another thread had run."""

    def __init__(self, lock: Any) -> None:
        self.real = lock
        self.entered, self.go = threading.Event(), threading.Event()
        self.release = lock.release

    def acquire(self) -> bool:
        if threading.current_thread().name == "late":
            self.entered.set()
            assert self.go.wait(60)
        return bool(self.real.acquire())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@pytest.mark.parametrize("end", ["close", "abandon"])
@pytest.mark.parametrize("name", APPENDS)
def test_a_delayed_append_does_not_write_after_the_close(tmp_path: Path, name: str, end: str) -> None:
    """``refuses`` was checked before the append lock and not under it. A delayed put got PUT_OK at the offset of the
    second owner's message, and overwrote it.
    """
    closed_store = MessageStore(tmp_path, SETTINGS)
    closed_store.put_message(Message("Orders", b"of the first"))
    log = closed_store.parts.commit_log
    lock = log.lock = HeldLock(log.lock)  # type: ignore[assignment]
    log._acquire = lock.acquire  # type: ignore[assignment]
    answers: list[Any] = []

    def append_late() -> None:
        try:
            answers.append(APPENDS[name](log))
        except StoreClosed as error:
            answers.append(error)

    thread = threading.Thread(target=append_late, name="late", daemon=True)
    thread.start()
    assert lock.entered.wait(60), "it appends without the lock"
    getattr(closed_store, end)()
    with MessageStore(tmp_path, SETTINGS, services=False) as owner:
        result = owner.put_message(Message("Orders", b"of the second"))
        assert result.append is not None
        owner.flush()
        files_before = bytes_of(tmp_path)
        lock.go.set()
        thread.join(60)
        (answer,) = answers
        assert isinstance(answer, StoreClosed) or answer.status is PutMessageStatus.SERVICE_NOT_AVAILABLE
        assert bytes_of(tmp_path) == files_before
        unit = owner.look_message_by_offset(result.append.physical_offset)
        assert unit is not None
        assert unit.body == b"of the second"


@pytest.mark.parametrize("name", APPENDS)
def test_a_refusing_store_refuses_every_way_to_append(tmp_path: Path, name: str) -> None:
    """After a failed flush a put was refused, but ``append_raw`` still appended (promise 8)."""
    with MessageStore(tmp_path, SETTINGS, services=False) as store:
        store.put_message(Message("Orders", b"x"))
        log, wrote = store.parts.commit_log, store.positions().wrote
        store.flags.raise_flag(NOT_WRITEABLE, "a flush failed")
        if name in {"append_raw", "append_units", "append_replicated", "append_blank", "begin_at"}:
            with pytest.raises(NotWriteable, match="takes nothing now"):
                APPENDS[name](log)
        else:
            assert APPENDS[name](log).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
        assert store.positions().wrote == wrote
        store.flags.clear(NOT_WRITEABLE)
        APPENDS[name](log)
        assert store.positions().wrote > wrote or name == "begin_at"


@pytest.mark.parametrize("end", ["close", "abandon"])
def test_a_wait_for_dispatch_ends_with_the_store(tmp_path: Path, end: str) -> None:
    store = MessageStore(tmp_path, SETTINGS)
    store.services.pause("reput")
    store.put_message(Message("Orders", b"x"))
    reput, done = store._services.reput, threading.Event()
    waits = threading.Thread(target=lambda: (reput.wait_for(1 << 40, 600_000), done.set()), daemon=True)
    waits.start()
    getattr(store, end)()
    assert done.wait(60)


def test_a_store_that_could_not_be_opened_leaves_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("engine.message_store.load", fails)
        with pytest.raises(KeyboardInterrupt):
            MessageStore(tmp_path, SETTINGS)
    MessageStore(tmp_path, SETTINGS).close()


def test_an_interrupted_close_releases_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C during the last flush: no thread keeps running, and the next owner recovers as after a crash."""
    store = MessageStore(tmp_path, SETTINGS)
    store.put_message(Message("Orders", b"x"))
    threads = set(threading.enumerate())

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store._services.log, "flush_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.close()
    assert store.closed
    assert not [thread for thread in set(threading.enumerate()) & threads if thread.name.startswith("storescope-")]
    with MessageStore(tmp_path, SETTINGS) as second_store:
        assert second_store.recovery_plan.exit == "abnormal"
        assert second_store.max_offset_in_queue("Orders", 0) == 1
