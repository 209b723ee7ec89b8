"""Names of files and folders of a store (docs/formats/files.md#folders). Pure: no disk is touched here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

FILE_NAME_DIGITS = 20
INDEX_NAME_DIGITS = 17
MAX_NAME_BYTES = 255
"""Bytes of a file's or folder's name."""
MAX_TOPIC_BYTES = 127
MAX_GROUP_BYTES = 255
"""Characters that brokers and clients take (Java: ``TopicValidator``, ``Validators``); %RETRY% and %DLQ% topics may be
as long as a folder's name.
"""

COMMIT_LOG_FILE_SIZE = 1 << 30
CONSUME_QUEUE_FILE_SIZE = 6_000_000
CONSUME_QUEUE_EXT_FILE_SIZE = 48 << 20
BATCH_CONSUME_QUEUE_FILE_SIZE = 13_800_000
INDEX_SLOTS = 5_000_000
INDEX_ENTRIES = 20_000_000
CHECKPOINT_SIZE = 4096
LAB_MARKER = "storescope-lab.json"
MOVED_FOLDER = "removed-by-repair"
"""Folder of the store into which a repair moves files; a broker does not look at it."""
"""A file beside the folder ``store`` of a lab store: it names the release for which the lab made the store."""
_INDEX_NAME = "%Y%m%d%H%M%S"


def queue_file_name(start_offset: int) -> str:
    """Return the 20-digit name of the file of a file queue that begins at ``start_offset`` (bytes)."""
    return f"{start_offset:0{FILE_NAME_DIGITS}d}"


def wheel_snapshot_position(name: str) -> int | None:
    """Return the position (bytes of the timer log) in the name of a snapshot of the timer wheel; None for another file,
    such as one that is still being written.
    """
    prefix, _, digits = name.partition(".")
    if prefix != "timerwheel" or not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return None
    return int(digits) if int(digits) < 1 << 63 else None


def parse_file_name(name: str) -> int | None:
    """Return the start offset (bytes) in a file's name, or None if Java's ``Long.parseLong`` refuses it.

    Names of any length are accepted, as in Java; only ASCII digits count here.

    """
    if not name or not name.isascii():
        return None
    digits = name[1:] if name[0] in "+-" else name
    if not digits.isdigit():
        return None
    value = int(name)
    return value if -(1 << 63) <= value < 1 << 63 else None


def is_folder_name(topic: str) -> bool:
    """Return True if a topic can be a folder: the name in a torn unit may lead out of the store, or contain NULs."""
    if topic in {"", ".", ".."} or "/" in topic or "\0" in topic:
        return False
    try:
        return len(topic.encode()) <= MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def index_file_name(now: int, previous_name: str) -> str:
    """Return the name of an index file created at ``now`` (ms): local time to the millisecond, 17 digits
    (docs/formats/index-file.md#files).

    Names must grow. RocketMQ reuses a file if two are created in one millisecond, and loses the order if the
    clock goes back. Here such a file gets the time of the file ``previous_name`` plus one millisecond.

    """
    local = time.localtime(now // 1000)
    name = f"{time.strftime(_INDEX_NAME, local)}{now % 1000:03d}"
    if name > previous_name:
        return name
    text = f"{previous_name[:-3]}{previous_name[-3:]}000"
    text = f"{previous_name[:-3]}{previous_name[-3:]}000"
    moment = datetime.strptime(text, f"{_INDEX_NAME}%f") + timedelta(milliseconds=1)  # noqa: DTZ007
    return f"{moment.strftime(_INDEX_NAME)}{moment.microsecond // 1000:03d}".zfill(INDEX_NAME_DIGITS)


@dataclass(frozen=True, slots=True)
class StorePaths:
    """Every path below a store's root directory (Java: StorePathConfigHelper)."""

    root: Path

    @property
    def commitlog(self) -> Path:
        return self.root / "commitlog"

    @property
    def consumequeue(self) -> Path:
        return self.root / "consumequeue"

    @property
    def consumequeue_ext(self) -> Path:
        return self.root / "consumequeue_ext"

    @property
    def batchconsumequeue(self) -> Path:
        return self.root / "batchconsumequeue"

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def abort(self) -> Path:
        return self.root / "abort"

    @property
    def abort_bak(self) -> Path:
        return self.root / "abort.bak"

    @property
    def confirmed_empty_log(self) -> Path:
        """Our own file: the consent to open a store with an empty log (:mod:`engine.store.recovery.empty_log`)."""
        return self.root / "storescope-empty-log.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def epoch_file(self) -> Path:
        return self.root / "epochFileCheckpoint"

    @property
    def timerwheel(self) -> Path:
        return self.root / "timerwheel"

    @property
    def timercheck(self) -> Path:
        return self.config / "timercheck"

    @property
    def timerlog(self) -> Path:
        return self.root / "timerlog"

    @property
    def compaction(self) -> Path:
        return self.root / "compaction"

    @property
    def config(self) -> Path:
        return self.root / "config"

    def queue_folder(self, topic: str, queue_id: int) -> Path:
        """Return the folder of a SimpleCQ queue; the topic is used verbatim, as RocketMQ does."""
        return self.consumequeue / topic / str(queue_id)

    def ext_folder(self, topic: str, queue_id: int) -> Path:
        return self.consumequeue_ext / topic / str(queue_id)

    def batch_folder(self, topic: str, queue_id: int) -> Path:
        return self.batchconsumequeue / topic / str(queue_id)
