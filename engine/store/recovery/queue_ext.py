"""The ext files beside a consume queue in recovery (docs/formats/consume-queue.md#ext).

They change as ConsumeQueueExt changes them, in both releases. A cut moves a position and deletes later files; the bytes
behind it stay in their file until new units overwrite them. Only the recovery of the queue itself cuts. Cutting the
queue at the log's end leaves its ext files alone, because the address that would cut them is forgotten by then. Units
that are dispatched again are appended at ``end``; they are not counted here.
"""

from __future__ import annotations

import struct

from engine.codec.consume_queue import ext_offset, is_ext_address
from engine.codec.cq_ext import END_MARK
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.store.recovery.plan import ExtCut

_SIZE = struct.Struct(">h")
_CHUNK = 1 << 20


class RecoveredExt:
    """The ext files of one queue on their way through recovery; offsets are bytes of the ext queue."""

    def __init__(self, sequence: FileSequence) -> None:
        self.files = [file for file in sequence.files if file.size]
        self.file_size = sequence.file_size
        self.end = self.files[-1].start_offset + self.file_size if self.files else 0
        self.deleted: list[ReadOnlyFile] = []
        self.bytes_read = 0

    def recover(self, max_address: int) -> None:
        """Find the end of the units in the last file and cut behind the unit at the queue's last ext address.

        Earlier files count as full whatever they hold: a broker walks them too, and forgets where that ended.
        """
        if not self.files:
            return
        last_file = self.files[-1]
        self.end = last_file.start_offset + self._units_end(last_file)
        if is_ext_address(max_address):
            self._cut_behind(ext_offset(max_address))

    def _units_end(self, file: ReadOnlyFile) -> int:
        """Position behind the last unit, skipping from size to size."""
        position = start = 0
        data = b""
        while True:
            if position + _SIZE.size > start + len(data):
                start, data = position, file.read(position, _CHUNK)
                self.bytes_read += len(data)
                if len(data) < _SIZE.size:
                    return position
            (size,) = _SIZE.unpack_from(data, position - start)
            if size <= 0 or position + size > self.file_size:
                return position
            position += size

    def _cut_behind(self, offset: int) -> None:
        """Cut behind the unit at ``offset``; nothing is cut where there is none."""
        file = next((f for f in reversed(self.files) if f.start_offset <= offset), None)
        if file is None or offset >= min(file.start_offset + self.file_size, self.end):
            return
        head = file.read(offset - file.start_offset, _SIZE.size)
        if len(head) < _SIZE.size or (size := _SIZE.unpack(head)[0]) < 1:
            return
        self.end = offset + size
        self._delete([f for f in self.files if f.start_offset > self.end])

    def forget_before(self, min_address: int) -> None:
        """Delete files that end before the ext address of the queue's first entry."""
        if is_ext_address(min_address):
            offset = ext_offset(min_address)
            self._delete([f for f in self.files if f.start_offset + self.file_size < offset])

    def destroy(self) -> None:
        """Delete every file, as a broker does on an empty log."""
        self._delete(self.files)
        self.end = 0

    def _delete(self, deleted_files: list[ReadOnlyFile]) -> None:
        self.deleted += deleted_files
        self.files = [file for file in self.files if file not in deleted_files]

    def cut(self, topic: str, queue_id: int) -> ExtCut | None:
        """Return what was cut and deleted; None where all that the files hold is kept."""
        dropped = sum(last_byte(file) for file in self.deleted)
        if self.files:
            last_file = self.files[-1]
            end = self.end - last_file.start_offset
            if last_file.read(end, _SIZE.size) == _SIZE.pack(END_MARK):
                end += _SIZE.size
            dropped += last_byte(last_file, end) - end
        if not dropped and not self.deleted:
            return None
        return ExtCut(topic, queue_id, self.end, dropped, tuple(file.path for file in self.deleted))
