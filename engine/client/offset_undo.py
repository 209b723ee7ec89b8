"""The file with a group's offsets from before a move, from which they are set again."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engine import system
from engine.client.offset_moves import OffsetMove
from engine.errors import StoreError, UsageError
from engine.sentences import sentence

_TYPE, _VERSION = "offsetUndo", 1


def undo_name(group: str) -> str:
    """Return a name for a new undo file of a group."""
    now = datetime.now()  # noqa: DTZ005  a name in the user's time
    return f"{re.sub('[^A-Za-z0-9_-]', '_', group)}.offsets-{now:%Y%m%d-%H%M%S-%f}.json"


def undo_record(command: str, name_servers: Sequence[str], group: str, moves: Sequence[OffsetMove]) -> dict[str, Any]:
    """Return the content of an undo file: the old offset of each queue that changes, None for none."""
    return {
        "type": _TYPE,
        "version": _VERSION,
        "time": time.time_ns() // 1_000_000,
        "command": command,
        "nameServers": list(name_servers),
        "group": group,
        "offsets": [{**move.queue.record(), "offset": move.old} for move in moves if move.changes],
    }


def write_undo(path: Path, record: dict[str, Any]) -> None:
    """Write a new file, and return when it is on the disk. Raises ``OSError``."""
    with path.open("x", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    system.sync_folder(path.resolve().parent)


def read_undo(path: Path) -> dict[str, Any]:
    """Read an undo file. Raises :class:`StoreError` and :class:`UsageError`."""
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
        if record["type"] != _TYPE or record["version"] != _VERSION:
            raise ValueError(record["type"])
        str(record["group"]), list(record["nameServers"])
        for row in record["offsets"]:
            str(row["topic"]), str(row["brokerName"]), int(row["queueId"]), row["offset"]
    except OSError as error:
        raise StoreError(error.strerror or str(error), file=str(path)) from error
    except (ValueError, KeyError, TypeError):
        raise UsageError(sentence("expected an undo file of offsets"), file=str(path)) from None
    return record
