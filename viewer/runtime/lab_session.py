"""A lab store in the window: its engine in a process, requests to it, and its replies. There is one a window.

The session polls the engine on a timer and emits signals. Views of the lab connect to it; views that show the same
directory read-only find it with :func:`lab_of`. The death of the process is reported once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from engine.releases import NEWEST
from viewer.look.assets import words
from viewer.runtime.live_feed import history_of

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.lab.load_settings import LoadSettings
    from engine.lab.power_loss_report import PowerLossReport
    from engine.lab.samples import LoadCounts, PositionSample, PutAnswer, ServeSettings, TopicPutCounts
    from engine.lab.server import OpenedStore
    from engine.lab.serving import ServingState
    from engine.releases import Release
    from viewer.runtime.lab_client import LabClient
    from viewer.runtime.live_history import LiveHistory
    from viewer.runtime.put_form import PutForm

SAMPLE_SECONDS = 0.1
SERVED_SECONDS = 0.5
PUTS_KEPT = 200
BYTES_KEPT = 32 << 20
"""Number of earlier puts whose bodies and units stay available."""
OK = "PUT_OK"


@dataclass(frozen=True, slots=True)
class ManualPut:
    """A message that was put by hand: the form, and what the store answered."""

    form: PutForm
    at_ms: int
    answer: PutAnswer
    count: int = 1

    @property
    def ok(self) -> bool:
        """True if the message was stored as asked."""
        return self.answer.status == OK

    @property
    def status(self) -> str:
        """PutMessageStatus's name."""
        return self.answer.status

    @property
    def offset(self) -> int | None:
        """Offset in the commit log; None if it was not stored."""
        return self.answer.offset if self.answer.offset >= 0 and self.answer.size else None

    @property
    def size(self) -> int:
        """Bytes in the log."""
        return self.answer.size

    @property
    def weight(self) -> int:
        """Bytes that keeping it takes."""
        return len(self.form.body) + len(self.answer.unit)

    def where(self) -> str:
        """``2,713,714,688 · OrderPaid/1/1,184,220``."""
        if self.offset is None:
            return ""
        place = f"{self.form.topic.strip()}/{self.form.queue.strip()}/{self.answer.queue_offset:,}"
        return f"{self.offset:,} · {place}"


class LabSession(QObject):
    """``changed()``: opened, closed, busy, load begun or ended; ``sampled(PositionSample)`` ten times a second;
    ``putDone(ManualPut)``; ``servingChanged()``: :attr:`serving` is new; ``power_was_cut()``: :attr:`report` is new;
    ``failed(words)``; ``died(words)``: the engine's process ended by itself.
    """

    changed = Signal()
    sampled = Signal(object)
    counted = Signal(object)
    putDone = Signal(object)
    power_was_cut = Signal()
    failed = Signal(str)
    died = Signal(str)
    servingChanged = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.client: LabClient | None = None
        self.folder: Path | None = None
        """The lab's folder, which contains ``store/``; None if the open store is the user's own."""
        self.store: Path | None = None
        self.config: MessageStoreConfig | None = None
        self.release: Release = NEWEST
        self.sample: PositionSample | None = None
        self.counts: LoadCounts | None = None
        self.load: LoadSettings | None = None
        self.load_paused = False
        self.done: deque[ManualPut] = deque(maxlen=PUTS_KEPT)
        self.report: PowerLossReport | None = None
        self.rerunning = False
        """True while the bytes that the disk kept are recovered once more, beside the store."""
        self.busy = ""
        """Description of the long work that runs."""
        self.dead = ""
        """Why the engine's process ended by itself."""
        self.history: LiveHistory | None = None
        """History of the store's positions since it was opened here, filled even if no view shows it."""
        self.serving: ServingState | None = None
        """Where and how the store is served; None if it is not."""
        self._served_at = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._looking: asyncio.Task[Any] | None = None

    # ---- states ------------------------------------------------------------------------------------------------------

    @property
    def there(self) -> bool:
        """True if a store is open here, with or without a running engine."""
        return self.store is not None

    @property
    def open_here(self) -> bool:
        """True if this lab has a store open for writing: its engine runs, or the user simulated a power cut."""
        return self.there and not self.dead

    @property
    def alive(self) -> bool:
        """True while the engine runs and takes messages."""
        return self.client is not None and not self.busy

    @property
    def without_power(self) -> bool:
        """True after a simulated power cut until the store is recovered."""
        return self.report is not None and self.report.state_after is None

    @property
    def again_possible(self) -> bool:
        """True if the bytes that the disk kept can be recovered once more."""
        return self.alive and self.report is not None and self.report.state_after is not None and not self.rerunning

    @property
    def can_cut_power(self) -> bool:
        """True if a power cut may be simulated: only on stores that the lab made."""
        return self.alive and self.folder is not None

    # ---- opening and closing -----------------------------------------------------------------------------------------

    async def open(self, folder: Path, config: MessageStoreConfig | None, release: Release) -> None:
        """Make the lab store of ``folder``, or open the one that is there. Raises as :meth:`LabClient.start`."""
        await self.close()
        client = self._client()
        self._take(client, await client.start(folder, config, release))

    async def open_store(self, path: Path, config: MessageStoreConfig | None, release: Release | None = None) -> None:
        """Open a user's own store for writing; its power cannot be cut. Raises as :meth:`LabClient.open_store`."""
        await self.close()
        client = self._client()
        self._take(client, await client.open_store(path, config, release))

    def _client(self) -> LabClient:
        from viewer.runtime.lab_client import LabClient

        client = LabClient(lambda error: self._fell(client, error))
        return client

    def _take(self, client: LabClient, opened: OpenedStore) -> None:
        self.client, self.store = client, opened.root.absolute()
        self.folder = opened.folder if opened.is_lab else None
        self.config, self.release = opened.config, opened.release
        self.dead = ""
        self.done.clear()
        self.history = history_of(self.store)
        _labs[self.store] = self
        self._watch()
        self.changed.emit()

    async def close(self) -> None:
        """Stop the load, close the store cleanly and end its process."""
        client, self.client = self.client, None
        store, self.store = self.store, None
        if store is not None:
            _labs.pop(store, None)
        self.folder = self.config = self.sample = self.counts = self.report = self.history = self.serving = None
        self.load, self.load_paused, self.busy = None, False, ""
        self._stop_looking()
        if store is not None:
            self.changed.emit()
        if client is not None:
            with contextlib.suppress(StoreError, OSError, EOFError, TimeoutError):
                await client.close()

    def _fell(self, client: LabClient, error: Exception) -> None:
        """Report that the engine's process ended by itself."""
        if client is not self.client:
            return
        self.client, self.dead, self.serving = None, str(error), None
        self.load, self.load_paused, self.busy = None, False, ""
        self._stop_looking()
        self.changed.emit()
        self.died.emit(str(error))

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` on the loop; :attr:`failed` reports its error."""
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except (StoreError, OSError, EOFError, ValueError, TimeoutError) as error:
            if not self.dead:
                self.failed.emit(str(error))

    # ---- looking -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        self._stop_looking()
        self._looking = asyncio.ensure_future(self._look_on())

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look_on(self) -> None:
        while (client := self.client) is not None:
            began = time.monotonic()
            if not self.busy:
                with contextlib.suppress(StoreError, OSError, EOFError):  # a client that died tells it itself
                    await self._look(client)
            await asyncio.sleep(max(0.02, SAMPLE_SECONDS - (time.monotonic() - began)))

    async def _look(self, client: LabClient) -> None:
        sample = await client.sample()
        if self.client is not client:
            return
        self.sample = sample
        self.sampled.emit(sample)
        await self.look_at_serving()
        if self.load is not None:
            self.counts = await client.counts()
            if self.client is not client:
                return
            if self.counts.stopped:
                self.load = None
                self.failed.emit(self.counts.stopped)
                self.changed.emit()
            self.counted.emit(self.counts)

    # ---- what is asked -----------------------------------------------------------------------------------------------

    async def put(self, form: PutForm) -> ManualPut | None:
        """Put the message that ``form`` describes. Raises :class:`viewer.runtime.put_form.FormFault` if it describes
        none.
        """
        messages = await asyncio.to_thread(form.messages)
        client = self.client
        if client is None:
            return None
        put_time_ms = round(time.time() * 1000)
        answer = await (client.put(messages[0]) if len(messages) == 1 else client.put_batch(messages))
        done = ManualPut(form, put_time_ms, answer, len(messages))
        self.done.append(done)
        while len(self.done) > 1 and sum(earlier_put.weight for earlier_put in self.done) > BYTES_KEPT:
            self.done.popleft()
        self.putDone.emit(done)
        return done

    async def set_load(self, settings: LoadSettings | None) -> None:
        """Begin a load, change it, or stop it (None)."""
        client = self.client
        if client is None:
            return
        self.counts = await client.load(settings)
        self.load, self.load_paused = settings, False
        self.counted.emit(self.counts)
        self.changed.emit()

    async def pause_load(self, on: bool) -> None:
        """Pause the load, or continue it."""
        client, settings = self.client, self.load
        if client is None or settings is None or on == self.load_paused:
            return
        await client.load(None if on else settings)
        self.load_paused = on
        self.changed.emit()

    async def pause(self, service: str, on: bool) -> None:
        """Pause a service, or continue it."""
        if self.client is not None:
            await (self.client.pause(service) if on else self.client.resume(service))

    async def step(self, service: str) -> None:
        """Run one round of a service."""
        if self.client is not None:
            await self.client.step(service)

    async def flush(self) -> None:
        """Flush everything put so far to disk."""
        if self.client is not None:
            await self.client.flush()
            self._note("live", words("flushed"), words("by hand"))

    async def commit(self) -> None:
        """Write the pool's buffers to the page cache."""
        if self.client is not None:
            await self.client.commit()
            self._note("live", words("committed"), words("by hand"))

    # ---- serving

    async def serve(self, settings: ServeSettings) -> None:
        """Serve the store to any client; :attr:`serving` says where. Raises as :meth:`LabClient.serve`."""
        if self.client is not None:
            self.serving = await self.client.serve(settings)
            self.changed.emit()
            self.servingChanged.emit()

    async def stop_serving(self) -> None:
        """Stop the server."""
        if self.client is not None and self.serving is not None:
            self.serving = None
            await self.client.stop_serving()
            self.changed.emit()
            self.servingChanged.emit()

    async def cut_connections(self) -> None:
        """End every connection of a client."""
        if self.client is not None:
            await self.client.cut_connections()

    async def add_broker(self, name: str, folder: Path) -> None:
        """Start another broker at the same name server, over the store in ``folder``. Raises what opening that store
        raises.
        """
        if self.client is not None:
            await self.client.add_broker(name, folder)
            await self._look_now()

    async def end_broker(self, name: str) -> None:
        """Stop an added broker; its store stays."""
        if self.client is not None and self.serving is not None:
            await self.client.end_broker(name)
            await self._look_now()

    async def set_queues(self, name: str, topic: str, queues: int) -> None:
        """Set the number of queues of a topic at a broker. Raises if a queue that would be removed has messages."""
        if self.client is not None and self.serving is not None:
            await self.client.set_queues(name, topic, queues)

    async def cut_client(self, client_id: str, name: str) -> int:
        """Close the connections of one client to one broker, or to all with ""; returns how many."""
        return await self.client.cut_client(client_id, name) if self.client is not None else 0

    async def _look_now(self) -> None:
        self._served_at = 0.0
        await self.look_at_serving()

    async def record_requests(self, on: bool) -> None:
        """Start or stop recording frames."""
        if self.client is not None and self.serving is not None:
            await self.client.record_requests(on)

    async def requests(self, first_number: int) -> tuple[int, int, bytes]:
        """Return frames from ``first_number`` on; see :meth:`LabClient.requests`."""
        return (
            await self.client.requests(first_number) if self.client is not None else (first_number, first_number, b"")
        )

    async def look_at_serving(self) -> None:
        """Ask for the state of the server, at most twice a second."""
        client = self.client
        if client is None or self.serving is None or time.monotonic() - self._served_at < SERVED_SECONDS:
            return
        self._served_at = time.monotonic()
        state = await client.serving()
        if self.client is client and self.serving is not None:
            self.serving = state
            self.servingChanged.emit()

    async def reopen(self, changes: Mapping[str, Any]) -> None:
        """Close the store cleanly and open it again with some values of its configuration changed."""
        from engine.lab.lab_store import change_config
        from engine.lab.presets import with_changes

        client, config, folder, store = self.client, self.config, self.folder, self.store
        if client is None or config is None or store is None:
            return
        self._set_busy("reopen")
        done = list(self.done)
        try:
            config = with_changes(config, changes)
            self.load, self.load_paused, self.client, self.serving = None, False, None, None
            await client.close()
            if folder is not None:
                await asyncio.to_thread(change_config, folder, config)
            client = self._client()
            opening = client.start(folder) if folder is not None else client.open_store(store, config, self.release)
            self._take(client, await opening)
            self.done.extend(done)
        except (StoreError, OSError) as error:
            self.dead = str(error)
            raise
        finally:
            self._set_busy("")

    # ---- the power cut ----------------------------------------------------------------------------------------------

    async def cut_power(self, seed: int) -> None:
        """Simulate a power cut. :attr:`report` shows what there was and what the disk kept."""
        client = self.client
        if client is None or self.folder is None:
            return
        self._set_busy("plug")
        try:
            self.load, self.load_paused, self.serving = None, False, None
            self.report = await client.cut_power(seed)
            self._note("error", words("power cut"))
        finally:
            self._set_busy("")
        self.power_was_cut.emit()

    async def recover(self) -> None:
        """Recover and open the store as the next start would; :attr:`report` gets the result."""
        client = self.client
        if client is None:
            return
        self._set_busy("recover")
        try:
            self.report = await client.recover()
            self._note("live", words("recovered"))
        finally:
            self._set_busy("")
        self.power_was_cut.emit()

    async def recover_again(self) -> None:
        """Recover the bytes that the disk kept once more. :attr:`report` shows if the result is the same store."""
        client = self.client
        if client is None or self.rerunning:
            return
        self.rerunning = True
        self.changed.emit()
        try:
            self.report = await client.recover_again()
        finally:
            self.rerunning = False
            self.changed.emit()
        self.power_was_cut.emit()

    async def put_counts(self, max_topics: int) -> tuple[TopicPutCounts, ...]:
        """Return put statistics of the queues of the fullest topics; () while the engine does not answer."""
        return await self.client.put_counts(max_topics) if self.client is not None and self.alive else ()

    def _note(self, shape: str, name: str, details: str = "") -> None:
        """Mark an action on the store in the history."""
        if self.history is not None:
            self.history.note(shape, name, details, time_ms=round(time.time() * 1000))

    def _set_busy(self, activity: str) -> None:
        self.busy = activity
        self.changed.emit()


class LabFeed:
    """Frames of the lab's broker, for views that show requests."""

    def __init__(self, lab: LabSession) -> None:
        self._lab = lab

    @property
    def address(self) -> str:
        """``ip:port`` of the broker; empty while nothing is served."""
        return self._lab.serving.broker if self._lab.serving is not None else ""

    def fetch(self, first_number: int, done: Callable[[int, int, bytes], None]) -> None:
        """Call ``done`` with the frames from ``first_number`` on: first number, next number, packed frames."""

        async def fetched() -> None:
            try:
                frames = await self._lab.requests(first_number)
            except (StoreError, OSError, EOFError):
                frames = first_number, first_number, b""
            done(*frames)

        self._lab.begin(fetched())

    def record(self, on: bool, done: Callable[[], None] = lambda: None) -> None:
        """Start or stop recording frames; ``done`` is called once that is in force."""

        async def report() -> None:
            await self._lab.record_requests(on)
            done()

        self._lab.begin(report())


_labs: dict[Path, LabSession] = {}


def lab_of(store: Path) -> LabSession | None:
    """Return the lab session that has the store open for writing; None if no session of this program has."""
    return _labs.get(store.absolute())
