"""The lab's own process: a store, a load on it, and a pipe that asks for both.

Both go as frames (:mod:`engine.lab.pipe_frames`): a request is a verb with its arguments, its answer an ``end`` with a
value and an error. A look is answered by the thread that reads the pipe, everything else by a few others, so that a put
that waits for a disk keeps nobody else waiting.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine import system
from engine.codec import dispatch_twin
from engine.codec.encode import Message
from engine.codec.machine_code_build import import_compiled
from engine.config import MessageStoreConfig
from engine.errors import StoreError, UsageError
from engine.files.layout import StorePaths
from engine.lab import pipe_frames
from engine.lab.acknowledged import Acknowledged
from engine.lab.lab_store import LabStore, is_lab
from engine.lab.load import Load
from engine.lab.load_settings import LoadSettings
from engine.lab.pipe_frames import Frame
from engine.lab.power_cut import cut_power, finish_report, keep_disk, recover_again, timed_open
from engine.lab.power_loss_report import PowerLossReport
from engine.lab.samples import LoadCounts, PositionSample, PutAnswer, ServeSettings, StepAnswer, TopicPutCounts
from engine.lab.watch import StoreWatch
from engine.mapped.backup import BackupDisk, BackupWriter
from engine.mapped.disk import RealDisk
from engine.mapped.undo import take_back
from engine.message_store import MessageStore
from engine.releases import Release
from engine.sentences import sentence
from engine.services.opening import written_by
from engine.store.put_message import PutMessageResult, PutMessageStatus
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery
from engine.store.recovery.plan import RecoveryPlan

if TYPE_CHECKING:
    from engine.lab.serving import LabServing, ServedBroker, ServingState

LAB_NICENESS: Final = 5
"""How far a lab stands back (nice) where the window that shows it wants the processor too."""
SWITCH_SECONDS: Final = 0.0005
"""Seconds for which a thread may keep the interpreter: a request waits a few of these at most."""
_PUT_THREADS: Final = 4
_OTHER_CALL_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store that is open now. ``is_lab`` says whether its power may be cut; ``plan`` is the recovery that opening
    it carried out, ``kept`` where what that changed is kept of somebody's own store.
    """

    folder: Path
    root: Path
    is_lab: bool
    config: MessageStoreConfig
    release: Release
    services: tuple[str, ...]
    plan: RecoveryPlan
    pid: int
    kept: Path | None = None


class Lab:
    """The state of the process: one store at a time. Every public method can be called over the pipe."""

    def __init__(self) -> None:
        self._lab: LabStore | None = None
        self._store: MessageStore | None = None
        self._own: OwnStore | None = None
        self._load: Load | None = None
        self._by_hand: dict[str, int] = {}
        self._earlier: dict[str, int] = {}  # statuses of loads that were ended
        self._acknowledged = Acknowledged()
        self._ended_loads: list[Acknowledged] = []
        self._watches: dict[str, StoreWatch] = {}
        self._serving: LabServing | None = None
        self.power_was_cut = False
        self._lock = threading.Lock()

    # -- life

    def start(self, folder: Path, config: MessageStoreConfig | None, release: Release, disk_bytes: int) -> OpenedStore:
        """Open the lab store at ``folder``, or make one there."""
        self._refuse_second()
        if is_lab(folder):
            self._lab = LabStore.open(folder)
        else:
            self._lab = LabStore.create(folder, config or MessageStoreConfig(), release=release, disk_bytes=disk_bytes)
        self._store = self._lab.store
        return self._opened(self._lab.folder, is_lab=True)

    def open_store(self, path: Path, config: MessageStoreConfig, release: Release | None) -> OpenedStore:
        """Open a store that the lab did not make for writing. Its power cannot be cut. ``release`` None: as the release
        that wrote it.
        """
        self._refuse_second()
        self._own = OwnStore(Path(path), config, release)
        self._store = self._own.store
        return self._opened(Path(path), is_lab=False)

    def close(self) -> None:
        """End the load and the serving, and the store in order. A second call does nothing."""
        self.stop_serving()
        with self._lock:
            store, self._store = self._store, None
            lab, self._lab = self._lab, None
            own_store, self._own = self._own, None
            self._watches.clear()
            if store is None:
                return
            for name in store.services.names:
                store.services.resume(name)  # a caller that waits for a paused service would never end
            if self._load is not None:
                self._load.stop()
            if lab is not None:
                lab.close()
            elif own_store is not None:
                own_store.close()

    # -- the power cut

    def cut_power(self, seed: int, keep: float | None) -> PowerLossReport:
        """End as by a power loss; this process gets no further request."""
        if self._lab is not None:
            self.stop_serving()
        with self._lock:
            lab, load = self._lab, self._load
            if lab is None:
                raise UsageError(sentence("only a store that the lab made can lose its power"))
            everybody = [self._acknowledged, *self._ended_loads]
            report = cut_power(lab, load, everybody + (load.acknowledged if load is not None else []), seed, keep)
            self._store = self._lab = None
            self.power_was_cut = True
            return report

    def recover(self, folder: Path, report: PowerLossReport | None) -> tuple[OpenedStore, PowerLossReport | None]:
        """Open a lab store after its power was cut, and complete the report."""
        self._refuse_second()
        if report is not None:
            keep_disk(folder)
        self._lab, took_ms = timed_open(folder)
        self._store = self._lab.store
        return self._opened(folder, is_lab=True), finish_report(self._lab, report, took_ms) if report else None

    def recover_again(self, folder: Path, report: PowerLossReport) -> PowerLossReport:
        """Recover the disk's content once more, beside the open store."""
        return replace(report, repeated_recovery=recover_again(folder, report))

    # -- putting

    def put(self, message: Message) -> PutAnswer:
        """Put one message as a producer does. The answer has its bytes in the log."""
        began = time.perf_counter_ns()
        return self._answer(self._open.put_message(message), 1, began)

    def put_batch(self, messages: Sequence[Message]) -> PutAnswer:
        """Put messages of one topic and queue as a client's batch; ``unit`` is the bytes of all of them."""
        began = time.perf_counter_ns()
        return self._answer(self._open.put_batch(messages), len(messages), began)

    def _answer(self, result: PutMessageResult, count: int, began: int) -> PutAnswer:
        store = self._open
        took_ms = (time.perf_counter_ns() - began) / 1e6
        status = result.status
        with self._lock:
            self._by_hand[status.name] = self._by_hand.get(status.name, 0) + count
        where = result.append
        if where is None or not result.ok:
            return PutAnswer(status.name, took_ms=took_ms)
        if status is PutMessageStatus.PUT_OK:
            with self._lock:
                self._acknowledged.ends.append(where.end_offset)
        return PutAnswer(
            status.name,
            where.physical_offset,
            where.size,
            where.queue_offset,
            where.store_timestamp,
            where.msg_id,
            _bytes_of(store, where.physical_offset, where.size),
            took_ms,
        )

    def load(self, settings: LoadSettings | None) -> LoadCounts:
        """Start a load, change it, or with None end it. Return what it has done so far."""
        store = self._open
        with self._lock:
            load = self._load
            if settings is None:
                if load is not None:
                    load.stop()
            elif load is not None and load.running:
                load.change(settings)
            else:
                if load is not None:
                    self._bank(load)
                self._load = load = Load(store, settings)
                load.start()
            return load.counts() if load is not None else LoadCounts()

    def counts(self) -> LoadCounts:
        """Return what the load has done so far."""
        return self._load.counts() if self._load is not None else LoadCounts()

    # -- serving

    def serve(self, settings: ServeSettings) -> ServingState:
        """Serve the store to any client, with a name server and a broker. Raises what :class:`LabServing` raises."""
        from engine.lab.serving import LabServing

        if self._serving is not None:
            raise UsageError(sentence("the store is served already"))
        self._serving = LabServing(self._open, settings)
        return self._serving.state()

    def stop_serving(self) -> None:
        """Stop serving; the store stays open. A second call does nothing."""
        serving, self._serving = self._serving, None
        if serving is not None:
            self._earlier["PUT_OK"] = self._earlier.get("PUT_OK", 0) + serving.stored_messages()
            serving.stop()

    def serving(self) -> ServingState | None:
        """Return the state of the server; None if nothing is served."""
        return self._serving.state() if self._serving is not None else None

    def cut_connections(self) -> None:
        """End every connection of a client."""
        if self._serving is not None:
            self._serving.cut()

    def add_broker(self, name: str, folder: Path) -> ServedBroker:
        """Start another broker at the same name server; see :meth:`LabServing.add_broker`."""
        return self._served.add_broker(name, folder)

    def end_broker(self, name: str) -> None:
        """End a broker that was added."""
        self._served.end_broker(name)

    def set_queues(self, name: str, topic: str, queues: int) -> int:
        """Set the number of queues of a topic at a broker. Return the old number."""
        return self._served.set_queues(name, topic, queues)

    def cut_client(self, client_id: str, name: str) -> int:
        """Close the connections of one client, to one broker or with "" to all. Return their number."""
        return self._served.cut_client(client_id, name)

    @property
    def _served(self) -> LabServing:
        if self._serving is None:
            raise UsageError(sentence("nothing is served"))
        return self._serving

    def record_requests(self, on: bool) -> None:
        """Start or stop recording the frames of requests and answers."""
        if self._serving is not None:
            self._serving.record(on)

    def requests(self, first_number: int) -> tuple[int, int, bytes]:
        """Return frames from ``first_number`` on; see :meth:`LabServing.frames`."""
        return self._serving.frames(first_number) if self._serving is not None else (first_number, first_number, b"")

    # -- services by hand

    def pause(self, name: str) -> None:
        """Pause a service until it is resumed."""
        self._open.services.pause(name)

    def resume(self, name: str) -> None:
        """Let a paused service continue."""
        self._open.services.resume(name)

    def step(self, name: str) -> StepAnswer:
        """Run one round of a service now."""
        store = self._open
        positions_before = store.positions()
        pause = store.services.step(name)
        return StepAnswer(positions_before, store.positions(), pause)

    def flush(self) -> int:
        """Flush everything put so far. Return the flushed offset."""
        return self._open.flush()

    def commit(self) -> int:
        """Write the pool's buffers to the page cache; returns the committed offset."""
        return self._open.services.log.commit_all()

    # -- looking

    def sample(self, reader: str = "") -> PositionSample:
        """Return the state of the store, and what happened since this ``reader`` last looked."""
        store = self._open
        watch = self._watches.get(reader)
        if watch is None:
            seems = self._lab.disk.capacity if self._lab is not None else 0
            watch = self._watches[reader] = StoreWatch(store, self._statuses, seems)
        return watch.sample()

    def put_counts(self, max_topics: int) -> tuple[TopicPutCounts, ...]:
        """Return the queue entries of the ``max_topics`` topics with most entries, the fullest first."""
        queues_by_topic: dict[str, list[tuple[int, int]]] = {}
        for queue in self._open.parts.queues:
            queues_by_topic.setdefault(queue.topic, []).append((queue.queue_id, queue.max_offset))
        put_counts = [TopicPutCounts(topic, tuple(sorted(queues))) for topic, queues in queues_by_topic.items()]
        return tuple(
            sorted(put_counts, key=lambda topic_counts: (-topic_counts.entries, topic_counts.topic))[:max_topics]
        )

    # -- inside

    @property
    def _open(self) -> MessageStore:
        store = self._store
        if store is None:
            raise UsageError(sentence("no store is open in the lab"))
        return store

    def _refuse_second(self) -> None:
        if self._store is not None:
            raise UsageError(sentence("a store is open in this lab already"))

    def _opened(self, folder: Path, *, is_lab: bool) -> OpenedStore:
        store = self._open
        return OpenedStore(
            folder,
            store.paths.root,
            is_lab,
            store.config,
            store.release,
            store.services.names,
            store.recovery_plan,
            os.getpid(),
            self._own.kept if self._own is not None else None,
        )

    def _bank(self, load: Load) -> None:
        flushed = self._open.positions().flushed
        for acknowledged in (*self._ended_loads, *load.acknowledged):
            acknowledged.prune(flushed)
        self._ended_loads = [history for history in (*self._ended_loads, *load.acknowledged) if history.ends]
        for name, number in load.statuses().items():
            self._earlier[name] = self._earlier.get(name, 0) + number

    def _statuses(self) -> dict[str, int]:
        numbers = dict(self._earlier)
        load = self._load
        served = {"PUT_OK": self._serving.stored_messages()} if self._serving is not None else {}
        for part in (self._by_hand, load.statuses() if load is not None else {}, served):
            for name, number in part.items():
                numbers[name] = numbers.get(name, 0) + number
        return numbers


def _bytes_of(store: MessageStore, offset: int, size: int) -> bytes:
    """The unit at ``offset``, also while it is in the pool only."""
    file = store.parts.files.find(offset)
    return file.appended(offset - file.start_offset, size) if file is not None else b""


def serve(pipe: system.PipeEnd) -> None:
    """Run the process: answer requests until the other end closes the pipe, then close the store."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as if the other end had gone away
    sys.setswitchinterval(SWITCH_SECONDS)
    system.lower_priority(LAB_NICENESS)
    lab = Lab()
    lock = threading.Lock()
    puts = ThreadPoolExecutor(_PUT_THREADS, "lab-put")
    other_calls = ThreadPoolExecutor(_OTHER_CALL_THREADS, "lab-ask")

    def answer(frame: Frame) -> None:
        reply = _answer(lab, frame)
        with lock, contextlib.suppress(OSError):
            pipe.send_bytes(reply)

    other_calls.submit(_warm_up)
    try:
        while True:
            frame = pipe_frames.receive(pipe)
            if frame.kind == "sample":
                answer(frame)
            elif frame.kind in ("put", "put_batch"):
                puts.submit(answer, frame)
            else:
                other_calls.submit(answer, frame)
            if frame.kind == "end":
                return
    except (EOFError, OSError):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if lab.power_was_cut:
            os._exit(0)  # as a power loss ends a process: callers that wait for the disk get no answer
        other_calls.shutdown(wait=True)
        with contextlib.suppress(StoreError, OSError):
            lab.close()
        puts.shutdown(wait=True)


def _warm_up() -> None:
    """Import and compile the code of batch puts and dispatch, before a caller waits for it."""
    with contextlib.suppress(Exception):
        import_compiled("compiled_write")
        dispatch_twin.twin()


def _answer(lab: Lab, frame: Frame) -> bytes:
    """Carry out the request in ``frame`` and send its result or error."""
    try:
        return pipe_frames.pack(frame.number, "end", _do(lab, frame.kind, frame.content()), None)
    except Exception as error:  # noqa: BLE001 (sent to the caller)
        return pipe_frames.pack(frame.number, "end", None, pipe_frames.portable(error))


def _do(lab: Lab, verb: str, args: tuple[Any, ...]) -> object:
    function: Callable[..., object] | None = None if verb.startswith("_") else getattr(lab, verb, None)
    if verb == "end":
        return None
    if function is None:
        raise UsageError(sentence("the lab knows no {what!r}", what=verb))
    return function(*args)


class OwnStore:
    """``store`` is open until :meth:`close`; ``kept`` is the folder where what is changed until then is kept, None
    where opening leaves log, queues and index as they are.

    Raises what :class:`MessageStore` raises, and :class:`engine.mapped.backup.CannotBackUp`; then nothing was changed.
    """

    def __init__(self, path: Path, config: MessageStoreConfig, release: Release | None) -> None:
        self._backup = _backup(path, config, release)
        self._disk = BackupDisk(self._backup) if self._backup is not None else None
        try:
            self.store = MessageStore(path, config, release=release, disk=self._disk)
        except BaseException as error:
            if self._disk is not None and self._backup is not None:
                self._disk.close()
                take_back(self._backup, error)
            raise
        self.kept = self._backup.folder if self._backup is not None else None

    def close(self) -> None:
        """Close as a broker that stops cleanly. From now on the backup can be restored."""
        try:
            self.store.close()
        finally:
            if self._disk is not None and self._backup is not None:
                self._disk.close()
                self._backup.finish()


def _backup(path: Path, config: MessageStoreConfig, release: Release | None) -> BackupWriter | None:
    paths = StorePaths(path)
    with closing(RealDisk()) as disk:
        plan = recovery.plan(load_source.source(paths, config, disk), release or written_by(paths, disk))
    if plan.changes_nothing or plan.empty_log is not None or not plan.will_start:
        return None
    return BackupWriter(path, "opening for writing", load_source.log_folders(paths, config))
