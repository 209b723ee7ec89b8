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

if TYPE_CHECKING:
    from engine.replication.master import Master

_PAUSE = 5.0
_FIRST_PAUSE = 0.2
"""Seconds before a link is begun again: twice as many each time, up to the longer pause."""
_SILENCE = 20.0
"""Seconds without a word after which either side takes the other for gone."""
_FLUSH_EVERY = 0.01
"""Seconds at least from one flush to the next: a master may wait for it."""
_OVERLAP = 1 << 16
_READ = 1 << 20
_log = logging.getLogger(__name__)


class NotAPrefix(StoreError):
    """The store holds what the master's log does not."""


@dataclass(slots=True)
class Progress:
    """How far a follower is, in bytes of the log. ``caught_up`` once the master had nothing more to send."""

    begun: int = 0
    received: int = 0
    flushed: int = 0
    links: int = 0
    caught_up: bool = False


class Follower:
    """Follows the master at ``host:port`` with an open store, which is the only one that writes to it.

    ``start`` is where an empty store begins: the first byte of the master's log; None: of its last file, as an empty
    slave of RocketMQ does. A store with messages goes on behind them, and its last bytes are compared first. The
    master is never told of an offset that is not flushed here. A master without a message is waited for.

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
        self._at = host, port
        self._start = start
        self._ask_master = ask_master
        self.progress = Progress()
        self._came = asyncio.Event()
        self._unexpected = ""
        """The last answer of the master's broker that could not be read, in words: each is reported once."""
        self.told: Callable[[str], None] = _log.info
        """Told of links that begin and end, a line each."""

    async def run(self) -> None:
        """Follow until cancelled. Raises :class:`NotAPrefix`, :class:`StoreError` for what cannot be a copy,
        ``OSError`` of the disk; a link that breaks is begun again, soon, and every five seconds where nobody answers.
        """
        pause, before = _FIRST_PAUSE, ""
        while True:
            try:
                async with asyncio.timeout(_PAUSE):
                    reader, writer = await asyncio.open_connection(*self._at)
            except (TimeoutError, OSError) as error:
                words = f"no link to {self._at[0]}:{self._at[1]}: {cause_of(error)}; asked again until there is one"
                if words != before:
                    self.told(words)
                before = words
            else:
                pause, before = _FIRST_PAUSE, ""
                try:
                    await self._follow(reader, writer)
                except (ConnectionError, TimeoutError) as error:
                    self.told(f"the link broke: {cause_of(error, 'the master says nothing')}")
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
            await asyncio.sleep(min(pause, _PAUSE))
            pause = min(pause * 2, _PAUSE)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        store, wanted = self._store, self._wanted()
        known = store.parts.files.wrote_offset if store.parts.files.last is not None else None
        self.progress.flushed = 0 if known is None else await asyncio.to_thread(store.flush)
        writer.write(report(wanted))
        receiver = Receiver()
        cutter: UnitCutter | None = None
        self.progress.links += 1
        self.told(f"linked, {_from(wanted)}")
        flushing = asyncio.ensure_future(self._flush(writer))
        try:
            while True:
                async with asyncio.timeout(_SILENCE):
                    data = await reader.read(_READ)
                if not data:
                    raise ConnectionError("the master closed it")
                if flushing.done():
                    flushing.result()
                for received in receiver.feed(data):
                    transfer = received
                    if cutter is None and not transfer.data:
                        await self._note_silence(transfer, wanted, known)
                        continue
                    if cutter is None:
                        cutter, transfer = self._begin(transfer, wanted, known)
                    self._take(cutter, transfer, known)
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])  # awaited itself, its end and that of this task could not be told apart
            if not flushing.cancelled():
                flushing.result()

    def _wanted(self) -> int:
        """The offset to ask for: of an empty store where it begins; else a little before its end, to be compared."""
        files = self._store.parts.files
        if files.last is None:
            # 0 asks for the last file; the byte before the second is that of a length, and 0 (see _begin)
            return 0 if self._start is None else max(self._start, 1)
        last = files.last
        return max(last.start_offset + max(last.wrote - _OVERLAP, 0), 1)

    async def _note_silence(self, heartbeat: Transfer, wanted: int, known: int | None) -> None:
        """The link is up and brought no bytes yet: wait for them, unless the master's log cannot give them."""
        self._check_offset(heartbeat, wanted)
        offset = 0 if wanted == 1 else heartbeat.offset
        master = await self._find_master()
        if master is not None and master.min_offset > offset:
            if known is None:
                self._start = master.min_offset
                raise ConnectionError(f"the master's log begins at offset {master.min_offset:,} now")
            raise NotAPrefix(
                f"the master's log begins at {master.min_offset:,}, the store's ends at {known:,}: what lies between "
                "is deleted there; follow with an empty store",
                file=str(self._store.paths.commitlog),
            )
        if known is not None and offset < known:
            words = f"the master's log ends at {offset:,}, the store's at {known:,}"
            raise NotAPrefix(words, file=str(self._store.paths.commitlog))
        self.progress.caught_up = master is None or master.max_offset <= offset

    async def _find_master(self) -> Master | None:
        """What the master's broker says of its log; None where it says nothing, or nothing that can be read."""
        if self._ask_master is None:
            return None
        try:
            return await self._ask_master()
        except UnexpectedAnswer as error:
            if self._unexpected != str(error):
                self._unexpected = str(error)
                self.told(self._unexpected)
            return None

    def _check_offset(self, transfer: Transfer, wanted: int) -> None:
        if wanted and transfer.offset != wanted:
            raise StoreError(f"asked for offset {wanted:,}, the master begins at {transfer.offset:,}")

    def _begin(self, transfer: Transfer, wanted: int, known: int | None) -> tuple[UnitCutter, Transfer]:
        """The cutter for a link whose first bytes are ``transfer``, and those bytes from where the cutter begins."""
        size = self._store.config.mapped_file_size_commit_log
        self._check_offset(transfer, wanted)
        if wanted == 1:  # no master sends byte 0: the first of a unit's length, 0 in any unit of less than 16 MiB
            transfer = Transfer(0, b"\0" + transfer.data)
        if known is None:
            self.progress.begun = transfer.offset
        return UnitCutter(transfer.offset if known is None else known, size), transfer

    def _take(self, cutter: UnitCutter, transfer: Transfer, known: int | None) -> None:
        if known is not None and transfer.data and transfer.offset < known:
            self._compare(transfer, known)
            if transfer.offset + len(transfer.data) <= known:
                return
            transfer = Transfer(known, transfer.data[known - transfer.offset :])
        if not transfer.data:
            if known is not None and transfer.offset < known:
                words = f"the master's log ends at {transfer.offset:,}, the store's at {known:,}"
                raise NotAPrefix(words, file=str(self._store.paths.commitlog))
            self.progress.caught_up = transfer.offset == cutter.expected
            return
        begin = cutter.offset
        whole = cutter.feed(transfer)
        if whole:
            self.progress.received += len(whole)
            self._store.append_replicated(begin, whole, cutter.stored)
            self._came.set()

    def _compare(self, transfer: Transfer, known: int) -> None:
        data = transfer.data[: known - transfer.offset]
        mine = self._store.parts.files.read(transfer.offset, len(data))
        if mine != data:
            at = next((n for n, pair in enumerate(zip(mine, data, strict=False)) if pair[0] != pair[1]), len(mine))
            raise NotAPrefix(
                "the store's log is no beginning of the master's: they differ, and nothing was written",
                file=str(self._store.paths.commitlog),
                offset=transfer.offset + at,
            )

    async def _flush(self, writer: asyncio.StreamWriter) -> None:
        """What came is flushed, and then the master is told; every five seconds in any case."""
        told = -1
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._came.wait()
            self._came.clear()
            if self._store.parts.files.wrote_offset > self.progress.flushed:
                self.progress.flushed = await asyncio.to_thread(self._store.flush)
            if self.progress.flushed > told or not self._came.is_set():
                told = self.progress.flushed
                writer.write(report(told))
            await asyncio.sleep(_FLUSH_EVERY)


def _from(wanted: int) -> str:
    """What an offset that is asked for means (see :meth:`Follower._wanted`)."""
    return {0: "from the master's last file on", 1: "from the beginning"}.get(wanted, f"from offset {wanted:,}")
