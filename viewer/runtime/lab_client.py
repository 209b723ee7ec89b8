"""The window's side of the lab: a process that has a store open for writing, reached over a pipe. No Qt.

Every call is a coroutine on the loop on which the client was started. If the process dies, pending and later calls
raise :class:`LabDied`. Errors of the engine arrive as the engine raised them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import system
from engine.errors import StoreError, UsageError
from engine.lab import pipe_frames
from engine.lab.pipe_frames import NotSendable
from engine.releases import NEWEST
from engine.sentences import sentence
from viewer.runtime.worker import quiet_main

if TYPE_CHECKING:
    from engine.codec.encode import Message
    from engine.config import MessageStoreConfig
    from engine.lab.load_settings import LoadSettings
    from engine.lab.power_loss_report import PowerLossReport
    from engine.lab.samples import LoadCounts, PositionSample, PutAnswer, ServeSettings, StepAnswer, TopicPutCounts
    from engine.lab.server import OpenedStore
    from engine.lab.serving import ServedBroker, ServingState
    from engine.releases import Release

CLOSE_SECONDS = 60.0
"""Seconds that an orderly close may take before the process is killed."""
DISK_BYTES = 16 << 30


class LabDied(StoreError):
    """The lab's process ended while its store was open; the store was not closed."""


class LabClient:
    """A lab process with one store. ``died`` is called on the loop if the process ends unexpectedly, with the
    error that all waiting calls get.
    """

    def __init__(self, died: Callable[[LabDied], None] | None = None) -> None:
        self.opened: OpenedStore | None = None
        self.error: LabDied | None = None
        self.report: PowerLossReport | None = None
        self._died = died
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: system.PipeEnd | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending = threading.Lock()
        self._closing = False
        self._without_power = False  # the power was cut, and the store was not opened since

    @property
    def alive(self) -> bool:
        """True while the process runs and answers."""
        return self._process is not None and not (self.error or self._closing or self._without_power)

    # ---- life

    async def start(
        self,
        folder: Path,
        config: MessageStoreConfig | None = None,
        release: Release = NEWEST,
        disk_bytes: int = DISK_BYTES,
    ) -> OpenedStore:
        """Open the lab store in ``folder``, or create one with ``config`` in a new or empty folder.

        ``disk_bytes`` is the size that its disk seems to have. Raises ``StoreError`` (``UsageError`` if something is in
        the way, ``CannotRead`` if rights are missing, ``StoreLocked``), ``OSError``.
        """
        opened: OpenedStore = await self._begin("start", Path(folder), config, release, disk_bytes)
        self.opened = opened
        return opened

    async def open_store(
        self, path: Path, config: MessageStoreConfig | None = None, release: Release | None = None
    ) -> OpenedStore:
        """Open a store for writing that the lab did not make. Its power is never cut, and nothing in it expires.

        Sizes that ``config`` lacks are derived from the files, and so is the release without ``release``. Raises like
        :meth:`start`; ``StoreLocked`` names the process that has it open.
        """
        writing_config = await asyncio.to_thread(config_for_writing, Path(path), config)
        opened: OpenedStore = await self._begin("open_store", Path(path), writing_config, release)
        self.opened = opened
        return opened

    async def close(self) -> None:
        """End the load, close the store and end the process. A second call does nothing.

        Raises the error of closing; the process has ended then, too.
        """
        if self._closing or self._process is None:
            return
        try:
            if self.error is None and not self._without_power:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._ask("close")
        except TimeoutError:
            raise LabDied(
                sentence(
                    "the lab's store was not closed within {seconds:.0f} s: its process is ended", seconds=CLOSE_SECONDS
                )
            ) from None
        finally:
            self._closing = True
            await asyncio.to_thread(self._end)

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does; pending calls raise."""
        if self._process is not None:
            self._process.kill()

    # ---- the power cut

    async def cut_power(self, seed: int, keep: float | None = None) -> PowerLossReport:
        """End the store as a power loss would, and the process with it. :meth:`recover` continues from there.

        ``keep`` is the chance (0 to 1) that unflushed bytes are on the disk all the same; None chooses it at random.
        Raises ``NotALab`` if the lab did not make the store; nothing was done then.
        """
        report: PowerLossReport = await self._ask("cut_power", seed, keep)
        self.report = report
        self._without_power = True
        await asyncio.to_thread(self._end)
        return report

    async def recover(self) -> PowerLossReport:
        """Open the store again in a new process, like a start after the power loss. The report is complete then.

        Raises like :meth:`start`, and ``UsageError`` if the power was not cut.
        """
        if self.opened is None or self.report is None or not self._without_power:
            raise UsageError(sentence("the power was not cut"))
        folder, report = self.opened.folder, self.report
        self._process = self._pipe = None
        self._without_power = False
        try:
            self.opened, self.report = await self._begin("recover", folder, report)
        except BaseException:
            self._without_power, self._closing = True, False
            raise
        return self.report

    async def recover_again(self) -> PowerLossReport:
        """Recover the bytes that the disk kept once more, beside the store. The report shows if the result is the same.

        Raises ``UsageError`` if nothing was recovered yet, ``StoreError``, ``OSError``.
        """
        if self.opened is None or self.report is None or self.report.state_after is None:
            raise UsageError(sentence("there is no recovery yet that could be repeated"))
        report: PowerLossReport = await self._ask("recover_again", self.opened.folder, self.report)
        self.report = report
        return report

    # ---- putting

    async def put(self, message: Message) -> PutAnswer:
        """Put one message and wait like its sender. Return the result and the bytes of the unit."""
        answer: PutAnswer = await self._ask("put", message)
        return answer

    async def put_batch(self, messages: Sequence[Message]) -> PutAnswer:
        """Put messages of one topic and queue like a client's batch. Return the result and the bytes of all units."""
        answer: PutAnswer = await self._ask("put_batch", list(messages))
        return answer

    async def load(self, settings: LoadSettings | None) -> LoadCounts:
        """Begin a load, change it while it runs, or end it with None. Return what it has done so far."""
        answer: LoadCounts = await self._ask("load", settings)
        return answer

    async def counts(self) -> LoadCounts:
        """Return what the load has done so far."""
        answer: LoadCounts = await self._ask("counts")
        return answer

    # ---- services by hand

    async def pause(self, service: str) -> None:
        """Pause a service (:attr:`OpenedStore.services`) until it is resumed."""
        await self._ask("pause", service)

    async def resume(self, service: str) -> None:
        """Resume a service."""
        await self._ask("resume", service)

    async def step(self, service: str) -> StepAnswer:
        """Run one round of a service now; returns the positions before and after."""
        answer: StepAnswer = await self._ask("step", service)
        return answer

    async def flush(self) -> int:
        """Flush everything put so far to disk. Return the flushed offset."""
        answer: int = await self._ask("flush")
        return answer

    async def commit(self) -> int:
        """Write the pool's buffers to the page cache; returns the committed offset."""
        answer: int = await self._ask("commit")
        return answer

    # ---- looking

    async def sample(self, reader: str = "") -> PositionSample:
        """Return the positions of the store. Rates and flushes are those since this ``reader`` last called."""
        answer: PositionSample = await self._ask("sample", reader)
        return answer

    async def put_counts(self, max_topics: int) -> tuple[TopicPutCounts, ...]:
        """Return put statistics of the queues of the fullest topics."""
        answer: tuple[TopicPutCounts, ...] = await self._ask("put_counts", max_topics)
        return answer

    # ---- serving

    async def serve(self, settings: ServeSettings) -> ServingState:
        """Start a name server and a broker over the store, for any client.

        Raises ``CannotRead`` if a port is taken, ``UsageError`` if the configuration is impossible.
        """
        answer: ServingState = await self._ask("serve", settings)
        return answer

    async def stop_serving(self) -> None:
        """Stop the server; the store stays open."""
        await self._ask("stop_serving")

    async def serving(self) -> ServingState | None:
        """Return the state of the server; None if there is none."""
        answer: ServingState | None = await self._ask("serving")
        return answer

    async def cut_connections(self) -> None:
        """Close every connection of a client; clients reconnect by themselves."""
        await self._ask("cut_connections")

    async def add_broker(self, name: str, folder: Path) -> ServedBroker:
        """Start another broker at the same name server, over the store in ``folder``. Raises like opening it."""
        answer: ServedBroker = await self._ask("add_broker", name, folder)
        return answer

    async def end_broker(self, name: str) -> None:
        """Stop an added broker; its store stays."""
        await self._ask("end_broker", name)

    async def set_queues(self, name: str, topic: str, queues: int) -> int:
        """Set the number of queues of a topic at a broker. Return the number before.

        Raises if a queue that would be removed has messages.
        """
        answer: int = await self._ask("set_queues", name, topic, queues)
        return answer

    async def cut_client(self, client_id: str, name: str) -> int:
        """Close the connections of one client to one broker, or with "" to all. Return how many."""
        answer: int = await self._ask("cut_client", client_id, name)
        return answer

    async def record_requests(self, on: bool) -> None:
        """Start or stop recording frames."""
        await self._ask("record_requests", on)

    async def requests(self, first_number: int) -> tuple[int, int, bytes]:
        """Return frames from ``first_number`` on: the number of the first one, the next number, and the frames."""
        answer: tuple[int, int, bytes] = await self._ask("requests", first_number)
        return answer

    # ---- below

    async def _begin(self, verb: str, *args: object) -> Any:
        await asyncio.to_thread(self._spawn)
        self._loop = asyncio.get_running_loop()
        assert self._pipe is not None
        threading.Thread(target=self._listen, args=(self._pipe,), name="lab-pipe", daemon=True).start()
        try:
            return await self._ask(verb, *args)
        except BaseException:
            self._closing = True
            await asyncio.to_thread(self._end)
            raise

    def _spawn(self) -> None:
        if self._process is not None:
            raise RuntimeError("a client is started once")
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        from engine.lab.server import serve

        self._process = context.Process(target=serve, args=(theirs,), name="storescope-lab", daemon=True)
        with quiet_main():
            self._process.start()
        theirs.close()

    async def _ask(self, verb: str, *args: object) -> Any:
        if self.error is not None:
            raise self.error
        if self._process is None or self._closing or self._without_power:
            raise LabDied(sentence("the lab is closed"))
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._send(number, verb, args)
            return await future
        finally:
            self._waiting.pop(number, None)

    def _send(self, number: int, verb: str, args: tuple[object, ...]) -> None:
        assert self._pipe is not None
        with self._sending:
            try:
                self._pipe.send_bytes(pipe_frames.pack(number, verb, *args))
            except OSError:  # the listener tells it, too
                self._fall(self._pipe)

    def _listen(self, pipe: system.PipeEnd) -> None:
        """Read replies of the lab in a thread until the pipe ends."""
        assert self._loop is not None
        while True:
            try:
                frame = pipe_frames.receive(pipe)
            except (EOFError, OSError):
                break
            try:
                value, error = frame.content()
            except NotSendable as wrong:
                value, error = None, wrong
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._take, frame.number, value, error)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._fall, pipe)

    def _take(self, number: int, value: object, error: Exception | None) -> None:
        future = self._waiting.pop(number, None)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def _fall(self, pipe: system.PipeEnd) -> None:
        """Fail all pending calls: the process behind ``pipe`` has ended."""
        if pipe is not self._pipe or self.error is not None:
            return
        error = LabDied("the lab's process has ended; its store was not closed in order and is recovered when opened")
        called_for = self._closing or self._without_power
        if not called_for:
            self.error = error
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        if not called_for and self._died is not None:
            self._died(error)

    def _end(self) -> None:
        """Ask the process to end and wait for it, in a thread; kill it after some seconds."""
        process, pipe = self._process, self._pipe
        if process is None or pipe is None:
            return
        with contextlib.suppress(OSError), self._sending:
            pipe.send_bytes(pipe_frames.pack(0, "end"))
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join(5)
        pipe.close()


def config_for_writing(path: Path, config: MessageStoreConfig | None) -> MessageStoreConfig:
    """Return the configuration for writing to a user's own store: the sizes that its files show, and no expiry.

    Raises ``StoreError`` if the store is incomplete or its sizes cannot be found.
    """
    from engine.files.store_folders import settle_folders
    from engine.inspection.derived_config import derived_config, quiet
    from engine.inspection.snapshot import open_store

    settle_folders(path, config).refuse_outside()
    with open_store(path, config) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one: it cannot be written"), file=str(path))
        return quiet(derived_config(store))
