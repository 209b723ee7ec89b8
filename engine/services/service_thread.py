"""ServiceThread: run a service's ``step()`` in a loop on its own thread (Java: ServiceThread).

This is the only module of the engine that starts threads and the only one that sleeps. A service returns the wait
until its next round; a caller that has work for it rings. Tests call ``step()`` and need no thread.

Short turns: while a service works beside busy producers, the interpreter switches threads after a fraction of a
millisecond. Each write and each compiled loop of a service releases the interpreter lock. Getting it back from a
computing thread takes a full switch interval, by default five milliseconds: a service with twenty writes would
need a tenth of a second for them and fall behind. The interval belongs to the whole interpreter, so it is
shortened only during such work, and restored at the end of the last one.

The same holds for puts that wait for a flush beside threads that never pause: each needs the interpreter back
when the disk is done. But among producers alone long turns are better, so there a :class:`ThreadContention` decides.

"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from engine.errors import StoreClosed
from engine.mapped.power_loss import PowerLoss
from engine.sentences import sentence

JOIN_TIMEOUT_S = 60.0
_PAUSED_MS = 1000.0
_log = logging.getLogger(__name__)


class Service(Protocol):
    """Something that works in rounds."""

    name: str

    def step(self) -> float:
        """Do one round; returns the milliseconds until the next one is due, 0 for at once."""


class WakeSignal:
    """Wakes the one thread that waits for it; a ring without a waiting thread is remembered, once."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()  # locked means: not rung

    def ring(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        try:
            self._lock.release()
        except RuntimeError:  # it already rings
            return

    def wait(self, milliseconds: float) -> bool:
        """Wait for a ring, at most so long; returns True if it rang."""
        return self._lock.acquire(timeout=max(milliseconds, 0.0) / 1000.0)


class ServiceThread:
    """Runs ``service`` until it is stopped.

    ``failed(name, error)`` is called for an exception from a round, which ends the thread: that is a bug of ours,
    and the store must not continue as if nothing had happened. The first round comes ``first_pause`` ms after the
    start.

    :meth:`pause` keeps the thread from stepping. :meth:`step` does a round on the caller's thread, never at the
    same time as one of the service's thread. After :meth:`end` nothing steps any more, and a round under way is
    over.

    """

    def __init__(
        self, service: Service, failed: Callable[[str, Exception], None] | None = None, first_pause: float = 0.0
    ) -> None:
        self.service = service
        self._first_pause = first_pause
        self._failed = failed
        self._bell = WakeSignal()
        self._stepping = threading.Lock()
        self.rounds = 0
        self._stopped = False
        self._paused = False
        self._ended = False
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    @property
    def paused(self) -> bool:
        return self._paused

    def start(self) -> None:
        """Start the thread; does nothing if it already runs."""
        if self._thread is None:
            self._stopped = False
            self._thread = threading.Thread(target=self._run, name=f"storescope-{self.service.name}", daemon=True)
            self._thread.start()

    def wakeup(self) -> None:
        """End the pause between two rounds."""
        self._bell.ring()

    def step(self) -> float:
        """Do one round on the caller's thread; returns the milliseconds until the next is due. Raises
        :class:`StoreClosed` after :meth:`end`.
        """
        with self._stepping:
            if self._ended:
                raise StoreClosed(sentence("{name} has ended", name=self.service.name))
            self.rounds += 1
            return self.service.step()

    def pause(self) -> None:
        """Let the thread start no further round until :meth:`resume`; waits for the end of a round under way. If the
        wait is interrupted, the thread is not paused.
        """
        try:
            self._paused = True
            with self._stepping:
                pass
        except BaseException:
            self.resume()
            raise

    def resume(self) -> None:
        """Let the thread step again."""
        self._paused = False
        self._bell.ring()

    def stop(self) -> None:
        """Let the thread end after the round under way."""
        self._stopped = True
        self._bell.ring()

    def join(self, seconds: float = JOIN_TIMEOUT_S) -> bool:
        """Wait for the thread's end; returns False if it did not come in time."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(seconds)
        if thread.is_alive():
            _log.warning("service %s did not end within %s s", self.service.name, seconds)
            return False
        self._thread = None
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the end of a round, and let none begin before the block ends."""
        with self._stepping:
            yield

    def end(self) -> None:
        """Allow no further step; waits for a round under way on a caller's thread. The thread has already ended."""
        if not self._stepping.acquire(timeout=JOIN_TIMEOUT_S):
            _log.warning("a round of %s did not end within %s s", self.service.name, JOIN_TIMEOUT_S)
            return
        self._ended = True
        self._stepping.release()

    def _run(self) -> None:
        pause = self._first_pause
        while True:
            if pause > 0:
                self._bell.wait(pause)
            if self._stopped:
                return
            try:
                pause = self._round()
            except PowerLoss:  # simulated: the process ends as it is
                return
            except Exception as error:  # noqa: BLE001  the store must know of any error
                is_of_system = isinstance(error, OSError)  # its text has the file and the reason
                _log.error("service %s ended: %s", self.service.name, error, exc_info=not is_of_system)
                if self._failed is not None:
                    self._failed(self.service.name, error)
                return

    def _round(self) -> float:
        with self._stepping:
            if self._paused:
                return _PAUSED_MS
            self.rounds += 1
            return self.service.step()


SHORT_TURN_S: Final = 0.0002
"""Switch interval during short turns."""
_ROUNDING: Final = 5e-7
"""The interpreter rounds down to whole microseconds: without this the interval would shrink each time."""


class ThreadContention:
    """Detects computing threads that keep waking threads from the interpreter.

    Measures how late a thread comes back that sleeps a known time, as a mean over about its last eight sleeps.
    ``now`` returns seconds.

    """

    _DENSE_LATE_S: Final = 0.002
    _MAX_LATE_S: Final = 0.05
    _MEAN_OVER_SLEEPS: Final = 8

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._due = float("inf")
        self._late = 0.0

    @property
    def is_dense(self) -> bool:
        """True if a waking thread must wait for two milliseconds or more."""
        return self._late > self._DENSE_LATE_S

    def sleeps(self, seconds: float) -> None:
        """The thread is about to sleep."""
        self._due = self._now() + seconds

    def wakes(self) -> None:
        """Record that the thread is back. If it came early it was woken, which says nothing."""
        late = self._now() - self._due
        if late >= 0:
            self._late += (min(late, self._MAX_LATE_S) - self._late) / self._MEAN_OVER_SLEEPS


class _ShortTurnBlocks:
    """The number of blocks under way, and the interval before the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.works = 0
        self.before = SHORT_TURN_S


_turns = _ShortTurnBlocks()


@contextmanager
def short_turns() -> Iterator[None]:
    """Make turns short within the block; blocks of several threads and stores may overlap."""
    turns = _turns
    with turns.lock:
        if turns.works == 0:
            turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(turns.before, SHORT_TURN_S) + _ROUNDING)
        turns.works += 1
    try:
        yield
    finally:
        with turns.lock:
            turns.works -= 1
            if turns.works == 0:
                sys.setswitchinterval(turns.before + _ROUNDING)
