"""A log that grows as a master's does: the slave's side of an HA port (docs/formats/replication.md; Java:
``DefaultHAClient``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StoreError, cause_of
from engine.message_store import MessageStore
from engine.remoting.answers import UnexpectedAnswer
from engine.replication.transfer import Receiver, Transfer, UnitCutter, report
from engine.sentences import sentence
from engine.store.put_raw_units import append_replicated

if TYPE_CHECKING:
    from engine.replication.master import Master

_MAX_PAUSE_S = 5.0
_FIRST_PAUSE_S = 0.2
"""Seconds before a link is begun again: twice as many each time, up to the longer pause."""
_SILENCE_TIMEOUT_S = 20.0
"""Seconds without a word after which either side takes the other for gone."""
_FLUSH_INTERVAL_S = 0.01
"""Seconds at least from one flush to the next: a master may wait for it."""
_OVERLAP_BYTES = 1 << 16
_READ_BYTES = 1 << 20
_log = logging.getLogger(__name__)


class NotAPrefix(StoreError):
    """The store holds what the master's log does not."""


@dataclass(slots=True)
class Progress:
    """Progress of a follower, in bytes of the log. ``caught_up`` is true once the master had nothing more to send."""

    begun: int = 0
    received: int = 0
    flushed: int = 0
    links: int = 0
    caught_up: bool = False


class Follower:
    """Follows the master at ``host:port`` with an open store, which is the only one that writes to it.

    ``start`` is where an empty store begins: the first byte of the master's log; None: of its last file, as an empty
    slave of RocketMQ does. A store with messages continues after them; its last bytes are compared first. Only flushed
    offsets are acknowledged to the master. If the master has no message yet, the follower waits.

    ``ask_master`` asks the master's broker where its log begins and ends. It is called only while a link brings
    heartbeats and no bytes: they do not tell a log without new bytes from one that deleted what was asked for.
    """

    def __init__(
        self,
        store: MessageStore,
        host: str,
        port: int,
        *,
        start: int | None = None,
        ask_master: Callable[[], Awaitable[Master | None]] | None = None,
    ) -> None:
        self._store = store
        self._address = host, port
        self._start = start
        self._ask_master = ask_master
        self.progress = Progress()
        self._data_received = asyncio.Event()
        self._unexpected = ""
        """The last answer of the master's broker that could not be read, in words: each is reported once."""
        self.on_status: Callable[[str], None] = _log.info
        """Called with a line for each link that begins or ends."""

    async def run(self) -> None:
        """Follow until cancelled. Raises :class:`NotAPrefix`, :class:`StoreError` for what cannot be a copy,
        ``OSError`` of the disk; a link that breaks is begun again, soon, and every five seconds where nobody answers.
        """
        pause, last_error = _FIRST_PAUSE_S, ""
        while True:
            try:
                async with asyncio.timeout(_MAX_PAUSE_S):
                    reader, writer = await asyncio.open_connection(*self._address)
            except (TimeoutError, OSError) as error:
                host, port = self._address
                error_text = sentence(
                    "no link to {host}:{port}: {error}; asked again until there is one",
                    host=host,
                    port=port,
                    error=cause_of(error),
                )
                if error_text != last_error:
                    self.on_status(error_text)
                last_error = error_text
            else:
                pause, last_error = _FIRST_PAUSE_S, ""
                try:
                    await self._follow(reader, writer)
                except (ConnectionError, TimeoutError) as error:
                    self.on_status(
                        sentence("the link broke: {error}", error=cause_of(error, "the master says nothing"))
                    )
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
            await asyncio.sleep(min(pause, _MAX_PAUSE_S))
            pause = min(pause * 2, _MAX_PAUSE_S)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        store, start_offset = self._store, self._choose_start_offset()
        store_end = store.parts.files.wrote_offset if store.parts.files.last is not None else None
        self.progress.flushed = 0 if store_end is None else await asyncio.to_thread(store.flush)
        writer.write(report(start_offset))
        receiver = Receiver()
        cutter: UnitCutter | None = None
        self.progress.links += 1
        self.on_status(f"linked, {_describe_start(start_offset)}")
        flushing = asyncio.ensure_future(self._flush(writer))
        try:
            while True:
                async with asyncio.timeout(_SILENCE_TIMEOUT_S):
                    data = await reader.read(_READ_BYTES)
                if not data:
                    raise ConnectionError(sentence("the master closed it"))
                if flushing.done():
                    flushing.result()
                for received in receiver.feed(data):
                    transfer = received
                    if cutter is None and not transfer.data:
                        await self._note_silence(transfer, start_offset, store_end)
                        continue
                    if cutter is None:
                        cutter, transfer = self._begin(transfer, start_offset, store_end)
                    self._append(cutter, transfer, store_end)
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])  # a plain await could not distinguish its cancellation from ours
            if not flushing.cancelled():
                flushing.result()

    def _choose_start_offset(self) -> int:
        """Return the offset to ask for: of an empty store where it begins; else a little before its end, so that the
        overlap can be compared.
        """
        files = self._store.parts.files
        if files.last is None:
            # 0 asks for the last file; the byte before the second is that of a length, and 0 (see _begin)
            return 0 if self._start is None else max(self._start, 1)
        last_file = files.last
        return max(last_file.start_offset + max(last_file.wrote - _OVERLAP_BYTES, 0), 1)

    async def _note_silence(self, heartbeat: Transfer, start_offset: int, store_end: int | None) -> None:
        """The link is up and brought no bytes yet: wait for them, unless the master's log cannot give them."""
        self._check_offset(heartbeat, start_offset)
        offset = 0 if start_offset == 1 else heartbeat.offset
        master = await self._find_master()
        if master is not None and master.min_offset > offset:
            if store_end is None:
                self._start = master.min_offset
                raise ConnectionError(
                    sentence("the master's log begins at offset {min_offset:,} now", min_offset=master.min_offset)
                )
            raise NotAPrefix(
                sentence(
                    "the master's log begins at {min_offset:,}, the store's ends at {store_end:,}: what lies "
                    "between is deleted there; follow with an empty store",
                    min_offset=master.min_offset,
                    store_end=store_end,
                ),
                file=str(self._store.paths.commitlog),
            )
        if store_end is not None and offset < store_end:
            words = sentence(
                "the master's log ends at {offset:,}, the store's at {store_end:,}", offset=offset, store_end=store_end
            )
            raise NotAPrefix(words, file=str(self._store.paths.commitlog))
        self.progress.caught_up = master is None or master.max_offset <= offset

    async def _find_master(self) -> Master | None:
        """Ask the master's broker about its log; return None if it gives no answer, or none that can be read."""
        if self._ask_master is None:
            return None
        try:
            return await self._ask_master()
        except UnexpectedAnswer as error:
            if self._unexpected != str(error):
                self._unexpected = str(error)
                self.on_status(self._unexpected)
            return None

    def _check_offset(self, transfer: Transfer, start_offset: int) -> None:
        if start_offset and transfer.offset != start_offset:
            raise StoreError(
                sentence(
                    "asked for offset {start_offset:,}, the master begins at {offset:,}",
                    start_offset=start_offset,
                    offset=transfer.offset,
                )
            )

    def _begin(self, transfer: Transfer, start_offset: int, store_end: int | None) -> tuple[UnitCutter, Transfer]:
        """Return the cutter for a link whose first bytes are ``transfer``, and those bytes from where the cutter
        begins.
        """
        size = self._store.config.mapped_file_size_commit_log
        self._check_offset(transfer, start_offset)
        if start_offset == 1:  # no master sends byte 0: the first of a unit's length, 0 in any unit of less than 16 MiB
            transfer = Transfer(0, b"\0" + transfer.data)
        if store_end is None:
            self.progress.begun = transfer.offset
        return UnitCutter(transfer.offset if store_end is None else store_end, size), transfer

    def _append(self, cutter: UnitCutter, transfer: Transfer, store_end: int | None) -> None:
        if store_end is not None and transfer.data and transfer.offset < store_end:
            self._compare(transfer, store_end)
            if transfer.offset + len(transfer.data) <= store_end:
                return
            transfer = Transfer(store_end, transfer.data[store_end - transfer.offset :])
        if not transfer.data:
            if store_end is not None and transfer.offset < store_end:
                words = sentence(
                    "the master's log ends at {offset:,}, the store's at {store_end:,}",
                    offset=transfer.offset,
                    store_end=store_end,
                )
                raise NotAPrefix(words, file=str(self._store.paths.commitlog))
            self.progress.caught_up = transfer.offset == cutter.expected
            return
        units_offset = cutter.offset
        units = cutter.feed(transfer)
        if units:
            self.progress.received += len(units)
            append_replicated(self._store.parts.commit_log, units_offset, units, cutter.stored)
            self._data_received.set()

    def _compare(self, transfer: Transfer, store_end: int) -> None:
        data = transfer.data[: store_end - transfer.offset]
        own_data = self._store.parts.files.read(transfer.offset, len(data))
        if own_data != data:
            difference = next(
                (n for n, pair in enumerate(zip(own_data, data, strict=False)) if pair[0] != pair[1]), len(own_data)
            )
            raise NotAPrefix(
                sentence("the store's log is no beginning of the master's: they differ, and nothing was written"),
                file=str(self._store.paths.commitlog),
                offset=transfer.offset + difference,
            )

    async def _flush(self, writer: asyncio.StreamWriter) -> None:
        """Flush what was received, then report it to the master; report every five seconds in any case."""
        reported_offset = -1
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_MAX_PAUSE_S):
                    await self._data_received.wait()
            self._data_received.clear()
            if self._store.parts.files.wrote_offset > self.progress.flushed:
                self.progress.flushed = await asyncio.to_thread(self._store.flush)
            if self.progress.flushed > reported_offset or not self._data_received.is_set():
                reported_offset = self.progress.flushed
                writer.write(report(reported_offset))
            await asyncio.sleep(_FLUSH_INTERVAL_S)


def _describe_start(start_offset: int) -> str:
    """Describe an offset that is asked for (see :meth:`Follower._choose_start_offset`)."""
    return {0: "from the master's last file on", 1: "from the beginning"}.get(
        start_offset, f"from offset {start_offset:,}"
    )
