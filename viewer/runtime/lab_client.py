"""The window's end of the lab: a process with a store open for writing, asked over a pipe.

Every question is a coroutine on the loop that the client was started on. A process that dies is told: what waits, and
what is asked later, raises :class:`LabDied`. Errors of the engine come as they were raised there. No Qt here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
"""How long an orderly end may take before the process is ended."""
DISK_BYTES = 16 << 30


class LabDied(StoreError):
    """The lab's process ended while its store was open; nothing was closed in order."""


class LabClient:
    """One lab process with one store. ``died`` is called on the loop if the process ends unexpectedly, with the
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
        self._pipe: Connection | None = None
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
        """Open the lab store at ``folder``, or make one of ``config`` there (new or empty folder).

        ``disk_bytes`` is how large its disk shall seem. Raises ``StoreError`` (``UsageError`` for what is in the way,
        ``CannotRead`` for missing rights, ``StoreLocked``), ``OSError``.
        """
        opened: OpenedStore = await self._begin("start", Path(folder), config, release, disk_bytes)
        self.opened = opened
        return opened

    async def open_store(
        self, path: Path, config: MessageStoreConfig | None = None, release: Release | None = None
    ) -> OpenedStore:
        """Open a store that is no lab's for writing; its power is never cut, and nothing in it expires meanwhile.

        Sizes that ``config`` does not give are worked out from its files, and so is the release
        without ``release``. Raises as :meth:`start`; ``StoreLocked``
        names the process that has it open.
        """
        writing_config = await asyncio.to_thread(config_for_writing, Path(path), config)
        opened: OpenedStore = await self._begin("open_store", Path(path), writing_config, release)
        self.opened = opened
        return opened

    async def close(self) -> None:
        """End the load, close the store in order, end the process. A second call does nothing. Raises what closing
        raised; the process is gone then, too.
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
        """End the store as a power loss would, and the process with it; :meth:`recover` goes on from there.

        ``keep`` is the chance (0 to 1) of what was not flushed to be on the disk all the same, by chance where it is
        not given. Raises ``NotALab`` where the lab has not made the store; then nothing was done.
        """
        report: PowerLossReport = await self._ask("cut_power", seed, keep)
        self.report = report
        self._without_power = True
        await asyncio.to_thread(self._end)
        return report

    async def recover(self) -> PowerLossReport:
        """Open the store again in a new process, as a start after the power loss; the report is complete then.

        Raises as :meth:`start`, and ``UsageError`` where the power was not cut.
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
        """Recover what the disk kept once more, beside the store; the report says whether it gave the same.

        Raises ``UsageError`` where nothing was recovered yet, ``StoreError``, ``OSError``.
        """
        if self.opened is None or self.report is None or self.report.state_after is None:
            raise UsageError(sentence("there is no recovery yet that could be repeated"))
        report: PowerLossReport = await self._ask("recover_again", self.opened.folder, self.report)
        self.report = report
        return report

    # ---- putting

    async def put(self, message: Message) -> PutAnswer:
        """Put one message and wait as its sender would; with the bytes that it became."""
        answer: PutAnswer = await self._ask("put", message)
        return answer

    async def put_batch(self, messages: Sequence[Message]) -> PutAnswer:
        """Put messages of one topic and queue as a client's batch; with the bytes of all of them."""
        answer: PutAnswer = await self._ask("put_batch", list(messages))
        return answer

    async def load(self, settings: LoadSettings | None) -> LoadCounts:
        """Begin a load, change it while it runs, or end it with None; what it has done so far."""
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
        """Let a service go on."""
        await self._ask("resume", service)

    async def step(self, service: str) -> StepAnswer:
        """Run one round of a service now; returns the positions before and after."""
        answer: StepAnswer = await self._ask("step", service)
        return answer

    async def flush(self) -> int:
        """Everything put so far to disk; the flushed offset."""
        answer: int = await self._ask("flush")
        return answer

    async def commit(self) -> int:
        """Write the pool's buffers to the page cache; returns the committed offset."""
        answer: int = await self._ask("commit")
        return answer

    # ---- looking

    async def sample(self, reader: str = "") -> PositionSample:
        """Return the positions of the store; rates and flushes are those since this ``reader`` last asked."""
        answer: PositionSample = await self._ask("sample", reader)
        return answer

    async def put_counts(self, max_topics: int) -> tuple[TopicPutCounts, ...]:
        """Return put statistics of the queues of the fullest topics."""
        answer: tuple[TopicPutCounts, ...] = await self._ask("put_counts", max_topics)
        return answer

    # ---- serving

    async def serve(self, settings: ServeSettings) -> ServingState:
        """A name server and a broker over the store, for any client. Raises ``CannotRead`` where a port is taken, and
        ``UsageError`` where the configuration says what cannot be met.
        """
        answer: ServingState = await self._ask("serve", settings)
        return answer

    async def stop_serving(self) -> None:
        """Serve no more; the store stays open."""
        await self._ask("stop_serving")

    async def serving(self) -> ServingState | None:
        """Return the state of the server; None where nothing is served."""
        answer: ServingState | None = await self._ask("serving")
        return answer

    async def cut_connections(self) -> None:
        """End every connection of a client; clients come again by themselves."""
        await self._ask("cut_connections")

    async def add_broker(self, name: str, folder: Path) -> ServedBroker:
        """Start another broker at the same name server, over the store in ``folder``; raises what opening that store
        raises.
        """
        answer: ServedBroker = await self._ask("add_broker", name, folder)
        return answer

    async def end_broker(self, name: str) -> None:
        """End one that was added; its store stays."""
        await self._ask("end_broker", name)

    async def set_queues(self, name: str, topic: str, queues: int) -> int:
        """Have a topic so many queues at a broker; how many it had. Raises where some would go that hold messages."""
        answer: int = await self._ask("set_queues", name, topic, queues)
        return answer

    async def cut_client(self, client_id: str, name: str) -> int:
        """End the connections of one client, to one broker or with "" to all; how many."""
        answer: int = await self._ask("cut_client", client_id, name)
        return answer

    async def record_requests(self, on: bool) -> None:
        """Keep the frames that come from now on, or none any more."""
        await self._ask("record_requests", on)

    async def requests(self, first_number: int) -> tuple[int, int, bytes]:
        """Return frames from ``first_number`` on: the number of the first, the one behind the last, and the frames."""
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

    def _listen(self, pipe: Connection) -> None:
        """In a thread of its own: hand on what the lab says until the pipe ends."""
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

    def _fall(self, pipe: Connection) -> None:
        """The process behind ``pipe`` has ended."""
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
        """In a thread: let the process go, at the latest after some seconds."""
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
    """The configuration under which somebody's own store is opened for writing: sizes as its files show them, and
    nothing that expires. Raises ``StoreError`` where it is no whole store or its sizes cannot be told.
    """
    from engine.files.store_folders import settle_folders
    from engine.inspection.derived_config import derived_config, quiet
    from engine.inspection.snapshot import open_store

    settle_folders(path, config).refuse_outside()
    with open_store(path, config) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one: it cannot be written"), file=str(path))
        return quiet(derived_config(store))
