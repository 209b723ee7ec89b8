"""Ext units beside a consume queue: real tag, store time, a filter's bit map (spec 3.6; Java: ConsumeQueueExt)."""

from __future__ import annotations

from engine.codec.consume_queue import ext_offset, is_ext_address
from engine.codec.cq_ext import CqExtStop, CqExtUnit, decode
from engine.codec.queue_placing import LARGEST_EXT, put_ext
from engine.store.queue_files import QueueFiles


class ConsumeQueueExt:
    """The ext files of one queue. An address is the unit's byte offset in them minus 2⁶³."""

    __slots__ = ("files",)

    def __init__(self, files: QueueFiles) -> None:
        self.files = files

    def load(self) -> None:
        """List the files; raises :class:`StoreError` for one of a wrong length."""
        self.files.load()

    put = put_ext

    def unit(self, address: int) -> CqExtUnit | None:
        """The unit at ``address``, None where none is."""
        if not is_ext_address(address):
            return None
        offset = ext_offset(address)
        raw = self.files.read(offset, min(LARGEST_EXT, self.files.end - offset))
        found = decode(raw, 0, offset) if raw else None
        return None if found is None or isinstance(found, CqExtStop) else found

    def recover(self) -> None:
        """Set the end behind the last unit (spec 3.6): from the first file on, by the units' own sizes."""
        starts = self.files.starts
        end = starts[0] if starts else 0
        for start in starts:
            raw = self.files.read(start, self.files.file_size)
            at = 0
            while at + 2 <= len(raw):
                size = int.from_bytes(raw[at : at + 2], "big", signed=True)
                if size <= 0:
                    break
                at += size
            end = start + min(at, self.files.file_size)
        self.cut(end)

    def cut(self, end: int) -> list[str]:
        """Let the next unit go to byte ``end``; later files are deleted, and their paths given."""
        starts = [start for start in self.files.starts if start <= end]
        return self.files.cut(starts[-1] if starts else None, end)

    def forget_before(self, address: int) -> list[str]:
        """Delete files that end before ``address``; gives their paths."""
        offset = ext_offset(address)
        gone = [start for start in self.files.starts if start + self.files.file_size < offset]
        return self.files.drop_first(gone)

    def flush(self, least_pages: int = 0) -> bool:
        """Bring units to the disk; True where nothing waits any more. Raises ``OSError``."""
        return self.files.flush(least_pages)

    def destroy(self) -> None:
        """Delete every file and the folders that are empty then."""
        self.files.destroy()
