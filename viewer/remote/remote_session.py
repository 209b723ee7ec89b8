"""What table and detail of the Log view need of a session, for messages at a broker: threads of its own, and the
rules by which bodies are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from engine.errors import CannotRead, cause_of
from engine.sentences import sentence
from viewer.runtime.loop_calls import open_mailbox, post, run_in
from viewer.runtime.worker import decoding_by_rules

if TYPE_CHECKING:
    from engine.client.blocking import BlockingTopicReader
    from engine.decoding.rules import DecodingRule
    from viewer.cluster.access import AccessFiles
    from viewer.remote.rows import RemoteLog
    from viewer.runtime.store_session import StoreSession

THREADS = 2
"""One pulls rows while the other decodes, or scans for a filter."""


class Stopped(Exception):
    """The user ended the wait for a broker."""


@dataclass
class RemoteSnapshot:
    """The part of a store that the detail of a message reads."""

    log: RemoteLog | None = None
    kind: str = "remote"
    capsule: None = None


class RemoteSession(QObject):
    """One window's connection to a cluster. It is made with the first request, in a thread.

    ``jobs`` is the session itself: it runs :meth:`read` in its threads.
    """

    decodingChanged = Signal()

    def __init__(
        self, addresses: Sequence[str], access: AccessFiles, store: StoreSession | None, parent: QObject
    ) -> None:
        super().__init__(parent)
        open_mailbox()
        self.addresses, self.access = tuple(addresses), access
        self.snapshot = RemoteSnapshot()
        self.jobs = self
        self.patches: tuple[object, ...] = ()
        self.body_fields: dict[str, None] = {}
        self.decoding_rules: tuple[DecodingRule, ...] = store.decoding_rules if store is not None else ()
        self._pool = ThreadPoolExecutor(THREADS, "remote")
        self._reader: BlockingTopicReader | None = None
        self._is_closed = False

    def reader(self) -> BlockingTopicReader:
        """Return the connection; the first call makes it. In a thread. Raises as :meth:`AccessFiles.read_account`."""
        if self._reader is None:
            from engine.client.blocking import BlockingTopicReader
            from engine.client.instance import ClientInstance

            account, tls = self.access.read_account(), self.access.read_tls()
            reader = BlockingTopicReader(ClientInstance(";".join(self.addresses), account=account, tls=tls))
            reader.start()
            self._reader = reader
        return self._reader

    def read(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Run ``work`` in a thread, then ``done`` or ``failed`` on the loop's thread, unless the window is closed."""

        def finish(value: Any, error: Exception | None) -> None:
            if self._is_closed:
                return
            if error is None:
                done(value)
            elif failed is not None:
                failed(self._in_words(error))

        rules = self.decoding_rules

        def decoding() -> Any:
            with decoding_by_rules(rules):
                return work()

        if not self._is_closed:
            run_in(self._pool, decoding, finish)

    def _in_words(self, error: Exception) -> Exception:
        if isinstance(error, CancelledError):
            return Stopped()
        if isinstance(error, (OSError, TimeoutError)) and not isinstance(error, CannotRead):
            has_ended = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
            cause = cause_of(error, "time is up")
            if has_ended and not self.access.tls:
                cause = sentence("{cause}; does it require TLS?", cause=cause)
            return CannotRead(sentence("the broker cannot be reached: {cause}", cause=cause))
        return error

    def report(self, call: Callable[[], object]) -> None:
        """Run a call of a thread on the loop's thread, unless the window is closed."""
        post(lambda: None if self._is_closed else call())

    def later(self, work: Callable[[], object]) -> None:
        """Run ``work`` now: nothing is postponed here."""
        work()

    def set_decoding_rules(self, rules: Sequence[DecodingRule]) -> None:
        """Decode bodies by other rules, in this window."""
        self.decoding_rules = tuple(rules)
        self.body_fields.clear()
        self.decodingChanged.emit()

    def cancel(self) -> None:
        """End all waits for a broker."""
        if self._reader is not None:
            self._reader.cancel()

    def close(self) -> None:
        """End the connection, in a thread."""
        self._is_closed = True
        self.cancel()
        reader, self._reader = self._reader, None
        if reader is not None:
            self._pool.submit(reader.stop)
        self._pool.shutdown(wait=False)
