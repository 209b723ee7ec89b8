"""The worker: a process for compiled walks, filters and checks, so that they never hold the interpreter lock of the
window.

It is started with *spawn* before it is needed; numba is imported and compiled there. A request names a function
``module:name``, which is called as ``function(control, *args)``; what it emits is streamed back. Every request ends
with a result or an error: an object that cannot be pickled is an error of its request. If the process dies, pending
requests fail with :class:`WorkerDied`, and the next request starts a new one. No Qt on either side of the pipe.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import system
from engine.lab import pipe_frames
from engine.lab.pipe_frames import Frame, NotSendable
from engine.mapped.reading import gather_unread
from viewer.runtime import memory
from viewer.runtime.priority import stand_back

if TYPE_CHECKING:
    from engine.decoding.rules import DecodingRule
    from engine.patching.patches import Patch

REPORT_EVERY = 0.1
PREPARING = "preparing, once on this machine"
"""Note of every request while machine code is compiled; :mod:`viewer.runtime.jobs` translates it."""
IDLE_AFTER_S = 3.0
"""Seconds without a request after which the worker returns memory to the system."""
RENEW_AFTER_S = 7.0
"""Seconds after that until a large worker gives its place to a new one."""
LARGE_BYTES = 64 << 20
"""A fresh worker has half of this, one with the compiler of machine code, DuckDB or pyarrow a multiple."""
CALL, CALL_BEHIND, CANCEL, END, ITEMS, REPORT, LARGE = "call", "behind", "cancel", "end", "items", "told", "large"
"""Kinds of frames."""
REST_POLL_S = 0.05


PatchedStore = tuple[Path, tuple["Patch", ...]]
"""A store, and the patches with which it is read."""


def reading_patched(patched: PatchedStore | None = None) -> AbstractContextManager[None]:
    """Return the context in which a store is read as ``patched`` says; without it as it is."""
    if patched is None:
        return contextlib.nullcontext()
    from engine.inspection.snapshot import read_as_patched

    return read_as_patched(*patched)


def decoding_by_rules(rules: Sequence[DecodingRule] | None) -> AbstractContextManager[object]:
    """Return the context in which fields of bodies are read by ``rules``; None: they are not read."""
    if rules is None:
        return contextlib.nullcontext()
    from engine.decoding.bodies import decoding_by

    return decoding_by(rules)


class Cancelled(Exception):
    """The work was cancelled."""


class WorkerDied(RuntimeError):
    """The worker process ended while a request was running."""


@dataclass(eq=False)
class _Request:
    items: Callable[[Any], None]
    on_progress: Callable[[float, float | None, str], None]
    finished: Callable[[Any, Exception | None], None]
    pipe: system.PipeEnd | None = None
    """The pipe through which it was sent; None while it is held back."""


class Worker:
    """The window's side of the worker.

    ``post`` runs a call on the loop's thread; all callbacks are called there. ``unread`` gets the files that a request
    could not read, before the request is finished. A process that has become large is replaced while nothing runs.
    """

    def __init__(self, post: Callable[..., None], unread: Callable[[tuple[Any, ...]], object] = tuple) -> None:
        self._post = post
        self._unread = unread
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: system.PipeEnd | None = None
        self._closed = False
        self._held: list[tuple[int, bytes]] | None = None

    def hold(self) -> None:
        """Postpone requests: a process that starts now would slow down the first rows."""
        if self._held is None and not self.alive:
            self._held = []

    def release(self) -> None:
        """Start, and send the postponed requests."""
        postponed, self._held = self._held or [], None
        self.start()
        for number, frame in postponed:
            self._send(number, frame)

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Start the process ahead of need."""
        if self.alive or self._closed or self._held is not None:
            return
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._pipe = ours
        self._process = context.Process(target=serve, args=(theirs,), name="storescope-worker", daemon=True)
        with quiet_main():
            self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, args=(ours,), name="worker-pipe", daemon=True).start()

    def request(
        self,
        target: str,
        args: tuple[object, ...],
        items: Callable[[Any], None],
        on_progress: Callable[[float, float | None, str], None],
        finished: Callable[[Any, Exception | None], None],
        patched: PatchedStore | None = None,
        decoding_rules: tuple[DecodingRule, ...] | None = None,
        *,
        gives_way: bool = False,
    ) -> int:
        """Request work; returns the number to cancel it by. ``patched`` is a store that it reads as patched,
        ``decoding_rules`` decode bodies. ``gives_way``: it rests while requests without this run.
        """
        self.start()
        number = next(self._numbers)
        self._requests[number] = _Request(items, on_progress, finished)
        try:
            kind = CALL_BEHIND if gives_way else CALL
            self._send(number, pipe_frames.pack(number, kind, target, args, patched, decoding_rules))
        except NotSendable as error:
            self._post(self._finish, number, None, error)
        return number

    def cancel(self, number: int) -> None:
        """Tell a request to stop; it ends with ``Cancelled`` or with its partial result."""
        self._send(number, pipe_frames.pack(number, CANCEL))

    def close(self) -> None:
        """End the process and forget what waits."""
        self._closed = True
        self._requests.clear()
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                self._pipe.close()
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(1)

    def _send(self, number: int, frame: bytes) -> None:
        if self._held is not None:
            self._held.append((number, frame))
            return
        pipe, request = self._pipe, self._requests.get(number)
        if request is not None and request.pipe is None:
            request.pipe = pipe
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):  # its end is told by the thread that listens
                pipe.send_bytes(frame)

    def _listen(self, pipe: system.PipeEnd) -> None:
        """Read messages of the worker in a thread until the pipe ends."""
        while True:
            try:
                frame = pipe_frames.receive(pipe)
            except (EOFError, OSError):
                self._post(self._died, pipe)
                return
            try:
                content = frame.content()
            except NotSendable as error:
                self._post(self._lost, frame.number, error)
            else:
                if frame.kind == LARGE:
                    self._post(self._renew, pipe)
                else:
                    self._post(self._take, frame.number, frame.kind, content)

    def _take(self, number: int, kind: str, content: tuple[Any, ...]) -> None:
        request = self._requests.get(number)
        if request is None:
            return
        if kind == ITEMS:
            request.items(content[0])
        elif kind == REPORT:
            request.on_progress(*content)
        else:
            value, error, unread = content
            self._unread(unread)
            self._finish(number, value, error)

    def _lost(self, number: int, error: Exception) -> None:
        """Fail a request whose result could not be unpickled."""
        self.cancel(number)
        self._finish(number, None, error)

    def _finish(self, number: int, value: object, error: Exception | None) -> None:
        request = self._requests.pop(number, None)
        if request is not None:
            request.finished(value, error)

    def _renew(self, pipe: system.PipeEnd) -> None:
        """Replace a process that says it is large, unless there is work for it again."""
        if pipe is self._pipe and not self._requests:
            self._send(0, pipe_frames.pack(0, END))
            self._process = None
            self.start()

    def _died(self, pipe: system.PipeEnd) -> None:
        """Fail all requests of a process that has ended. A pipe ends before its process counts as dead."""
        if self._closed:
            return
        waiting = [number for number, request in self._requests.items() if request.pipe is pipe]
        if self._pipe is pipe:
            self._process = None
        for request in [self._requests.pop(number) for number in waiting]:
            request.finished(None, WorkerDied("The worker process ended; the work can be started again"))


class FrontRequests:
    """Counts the running requests that do not give way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._none = threading.Event()
        self._none.set()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count a request while it runs."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def _add(self, number: int) -> None:
        with self._lock:
            self._count += number
            if self._count:
                self._none.clear()
            else:
                self._none.set()

    def wait(self, stop: threading.Event) -> None:
        """Wait until none runs, or until ``stop`` is set."""
        while not self._none.wait(REST_POLL_S) and not stop.is_set():
            pass


class WorkerControl:
    """The view that a function in the worker has of its request: when to stop, and where to send results.

    With ``front_requests`` the work gives way: it rests while they run.
    """

    def __init__(self, number: int, send: Callable[[bytes], None], front_requests: FrontRequests | None = None) -> None:
        self.stop = threading.Event()
        self._number, self._send = number, send
        self._front_requests = front_requests
        self._last_report = 0.0

    @property
    def cancelled(self) -> bool:
        """True when the work must stop; check every few milliseconds. Work that gives way may rest here."""
        if self._front_requests is not None:
            self._front_requests.wait(self.stop)
        return self.stop.is_set()

    def check(self) -> None:
        """Raise if the request must stop."""
        if self.cancelled:
            raise Cancelled

    def emit(self, items: object) -> None:
        """Send results; batch small ones. Raises :class:`NotSendable`."""
        self._send(pipe_frames.pack(self._number, ITEMS, items))

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report progress."""
        now = time.monotonic()
        if now - self._last_report >= REPORT_EVERY:
            self._last_report = now
            self._send(pipe_frames.pack(self._number, REPORT, done, total, note))

    def tell(self, note: str) -> None:
        """Send ``note`` at once, for work whose progress is unknown."""
        self._last_report = time.monotonic()
        self._send(pipe_frames.pack(self._number, REPORT, 0.0, None, note))


class _IdleWork:
    """Work for idle times, done when no request has come for :data:`IDLE_AFTER_S`.

    Beside a running broker requests follow one another, and nothing is done between them. It returns memory to the
    system. If the process is still large some seconds later, ``on_large`` is called.
    """

    def __init__(self, on_large: Callable[[], None]) -> None:
        self._on_large = on_large
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Start the timer: no request is running."""
        self._start_timer(IDLE_AFTER_S, self._give_back)

    def _start_timer(self, seconds: float, work: Callable[[], None]) -> None:
        self.put_off()
        self._timer = timer = threading.Timer(seconds, work)
        timer.daemon = True
        timer.start()

    def put_off(self) -> None:
        """Stop the timer: a request has come."""
        if self._timer is not None:
            self._timer.cancel()

    def _give_back(self) -> None:
        timer = self._timer
        memory.give_back()
        memory.give_back_code()
        if timer is self._timer:  # no request has come meanwhile
            self._start_timer(RENEW_AFTER_S, self._report_size)

    def _report_size(self) -> None:
        if system.own_memory_bytes() > LARGE_BYTES:
            self._on_large()


def serve(pipe: system.PipeEnd) -> None:
    """Main function of the worker: execute requests until the window is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stand_back()
    lock = threading.Lock()
    controls: dict[int, WorkerControl] = {}
    front_requests = FrontRequests()
    preparing = False

    def send(frame: bytes) -> None:
        with lock, contextlib.suppress(OSError):
            pipe.send_bytes(frame)

    idle_work = _IdleWork(lambda: send(pipe_frames.pack(0, LARGE)))

    def tell_compiling(begins: bool) -> None:
        """Notify all pending requests that compiling has begun or ended."""
        nonlocal preparing
        preparing = begins
        for control in list(controls.values()):
            control.tell(PREPARING if begins else "")

    threading.Thread(target=_warm_up, args=(tell_compiling,), name="warm-up", daemon=True).start()
    while True:
        try:
            frame = pipe_frames.receive(pipe)
        except (EOFError, OSError):
            for control in list(controls.values()):
                control.stop.set()  # work that waits in a pool's thread keeps a process from ending
            return
        number = frame.number
        if frame.kind == END:
            return
        if frame.kind == CANCEL:
            if number in controls:
                controls[number].stop.set()
            continue
        gives_way = frame.kind == CALL_BEHIND
        control = controls[number] = WorkerControl(number, send, front_requests if gives_way else None)
        idle_work.put_off()
        if preparing:
            control.tell(PREPARING)

        def body(number: int = number, control: WorkerControl = control, frame: Frame = frame) -> None:
            with contextlib.nullcontext() if frame.kind == CALL_BEHIND else front_requests.running():
                send(_answer(control, frame))
            controls.pop(number, None)
            if not controls:
                idle_work.begin()

        try:
            threading.Thread(target=body, name=f"request-{number}", daemon=True).start()
        except RuntimeError as error:  # no further thread is to be had
            send(pipe_frames.pack(number, END, None, pipe_frames.portable(error), ()))


def _answer(control: WorkerControl, frame: Frame) -> bytes:
    """Execute the request in ``frame``. Return its final message, with the files that could not be read."""
    with gather_unread() as unread:
        try:
            target, args, *contexts = frame.content()
            patched, decoding_rules, *_ = (*contexts, None, None)
            module, _, name = target.partition(":")
            with reading_patched(patched), decoding_by_rules(decoding_rules):
                value = getattr(importlib.import_module(module), name)(control, *args)
            return pipe_frames.pack(frame.number, END, value, None, tuple(unread))
        except BaseException as error:  # noqa: BLE001 (carried to the process that waits for it)
            return pipe_frames.pack(frame.number, END, None, pipe_frames.portable(error), tuple(unread))


def _warm_up(on_compiling: Callable[[bool], None]) -> None:
    """Load modules for walks and text searches before they are needed. ``on_compiling`` is called when machine code is
    compiled, the first time on a machine.
    """
    with contextlib.suppress(Exception):
        setattr(importlib.import_module("engine.codec.machine_code_build"), "on_compiling", on_compiling)  # noqa: B010
        importlib.import_module("engine.codec.block_texts").prepare()


@contextlib.contextmanager
def quiet_main() -> Any:
    """Hide the program's own main module while a process is spawned, so that the child does not run it again."""
    main = sys.modules["__main__"]
    saved = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    try:
        if "__file__" in saved:
            del main.__file__
        main.__spec__ = None
        yield
    finally:
        for name, value in saved.items():
            setattr(main, name, value)
