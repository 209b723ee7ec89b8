"""The worker: a process of its own for compiled walks, filters and checks, so that the window's loop never shares its
lock.

Started with *spawn* ahead of need; numba is imported and compiled there. A request names a function ``module:name``
that is called as ``function(control, *args)``; what it emits streams back. Where the process dies, what waited fails
with :class:`WorkerDied` and the next request starts a new one. No Qt on either side of the pipe.
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
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from viewer.bridge.standing_back import stand_back

REPORT_EVERY = 0.1


class Cancelled(Exception):
    """The work was told to stop."""


class WorkerDied(RuntimeError):
    """The worker process ended while work was under way."""


@dataclass(eq=False)
class _Request:
    items: Callable[[Any], None]
    told: Callable[[float, float | None, str], None]
    finished: Callable[[Any, Exception | None], None]
    pipe: Connection | None


class Worker:
    """The window's end of the pipe. ``post`` has a call done on the loop's thread; all callbacks arrive there."""

    def __init__(self, post: Callable[..., None]) -> None:
        self._post = post
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._held: list[tuple[object, ...]] | None = None

    def hold(self) -> None:
        """Keep requests back: a process that starts now would take its time from the first rows."""
        if self._held is None and not self.alive:
            self._held = []

    def release(self) -> None:
        """Start, and send what was kept back."""
        held, self._held = self._held or [], None
        self.start()
        for message in held:
            self._send(message)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Have the process ready; called ahead of need."""
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
        told: Callable[[float, float | None, str], None],
        finished: Callable[[Any, Exception | None], None],
    ) -> int:
        """Ask for work; gives the number to cancel it by."""
        self.start()
        number = next(self._numbers)
        self._requests[number] = _Request(items, told, finished, self._pipe)
        self._send(("call", number, target, args))
        return number

    def cancel(self, number: int) -> None:
        """Tell a request to stop; it ends with ``Cancelled`` or with what it had found."""
        self._send(("cancel", number))

    def close(self) -> None:
        """End the process; what waits is forgotten."""
        self._closed = True
        self._requests.clear()
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                self._pipe.close()
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(1)

    def _send(self, message: tuple[object, ...]) -> None:
        if self._held is not None:
            self._held.append(message)
        elif self._pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                self._pipe.send(message)

    def _listen(self, pipe: Connection) -> None:
        """In a thread of its own: hand on what the worker says until the pipe ends."""
        while True:
            try:
                message = pipe.recv()
            except (EOFError, OSError, TypeError):
                self._post(self._died, pipe)
                return
            self._post(self._take, message)

    def _take(self, message: tuple[Any, ...]) -> None:
        kind, number, *rest = message
        request = self._requests.get(number)
        if request is None:
            return
        if kind == "items":
            request.items(rest[0])
        elif kind == "told":
            request.told(*rest)
        else:
            del self._requests[number]
            request.finished(rest[0], rest[1])

    def _died(self, pipe: Connection) -> None:
        """The process behind ``pipe`` is gone or going: a pipe ends before its process counts as dead."""
        if self._closed:
            return
        waiting = [number for number, request in self._requests.items() if request.pipe is pipe]
        if self._pipe is pipe:
            self._process = None
        for request in [self._requests.pop(number) for number in waiting]:
            request.finished(None, WorkerDied("The worker process ended; the work can be started again"))


class WorkerControl:
    """What a function in the worker sees: whether to stop, and where to put what it finds."""

    def __init__(self, number: int, send: Callable[[tuple[object, ...]], None]) -> None:
        self.stop = threading.Event()
        self._number, self._send = number, send
        self._told = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether to stop; ask every few milliseconds."""
        return self.stop.is_set()

    def check(self) -> None:
        """Raise where the request was told to stop."""
        if self.stop.is_set():
            raise Cancelled

    def emit(self, items: object) -> None:
        """Send something that was found; batch what is small."""
        self._send(("items", self._number, items))

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the work is."""
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY:
            self._told = now
            self._send(("told", self._number, done, total, note))


def serve(pipe: Connection) -> None:
    """The worker's own main: take requests until the window goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stand_back()
    lock = threading.Lock()
    controls: dict[int, WorkerControl] = {}

    def send(message: tuple[object, ...]) -> None:
        with lock, contextlib.suppress(OSError):
            pipe.send(message)

    threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()
    while True:
        try:
            kind, number, *rest = pipe.recv()
        except (EOFError, OSError):
            return
        if kind == "cancel":
            if number in controls:
                controls[number].stop.set()
            continue
        control = controls[number] = WorkerControl(number, send)

        def body(number: int = number, control: WorkerControl = control, rest: list[Any] = rest) -> None:
            send(("end", number, *_call(control, rest[0], rest[1])))
            controls.pop(number, None)

        threading.Thread(target=body, name=f"request-{number}", daemon=True).start()


def _call(control: WorkerControl, target: str, args: tuple[object, ...]) -> tuple[object, Exception | None]:
    try:
        module, _, name = target.partition(":")
        return getattr(importlib.import_module(module), name)(control, *args), None
    except Exception as error:  # noqa: BLE001 (carried to the process that waits for it)
        return None, _portable(error)


def _portable(error: Exception) -> Exception:
    """``error`` itself where it survives the pipe, else its words."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (bytes made in the line itself)
    except Exception:  # noqa: BLE001 (whatever a foreign class does when it is copied)
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _warm_up() -> None:
    """Import and compile what walks need before anybody asks."""
    with contextlib.suppress(Exception):
        importlib.import_module("engine.codec.compiled")


@contextlib.contextmanager
def quiet_main() -> Any:
    """While a process is spawned: the child must not run the program's own main module again."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    try:
        if "__file__" in kept:
            del main.__file__
        main.__spec__ = None
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)
