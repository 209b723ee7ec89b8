"""The queue entry of the message at offset 0, after the first file of the log was deleted.

For an offset that no file has a broker returns nothing, and goes on. For offset 0 it takes the first file that is left
(``CommitLog.getMessage``: ``findMappedFileByOffset(offset, offset == 0)``), and gives consumers the bytes there: parts
of other messages. It meets the entry only if the whole first file of the queue is of deleted messages: else it begins
the queue behind it. RocketMQ removes such files itself, but not before it serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codec.consume_queue import CQ_UNIT_SIZE, PREFILLED_SIZE, decode

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.mapped.read_only import ReadOnlyFile


def find_stale_first_file(queue: QueueReader, log_start: int) -> ReadOnlyFile | None:
    """Return the first file of a queue if a broker would follow its entry for the deleted message at offset 0."""
    files = sorted(queue.files, key=lambda file: file.start_offset)
    if queue.kind != "simple" or log_start <= 0 or len(files) < 2 or files[0].start_offset:
        return None
    file = files[0]
    if file.size < CQ_UNIT_SIZE or file.size % CQ_UNIT_SIZE:
        return None
    entry = decode(file.read(0, CQ_UNIT_SIZE))
    last_entry = decode(file.read(file.size - CQ_UNIT_SIZE, CQ_UNIT_SIZE))
    is_of_message = entry.physical_offset == 0 and 0 < entry.size < PREFILLED_SIZE
    return file if is_of_message and 0 < last_entry.physical_offset < log_start else None
