"""A recording that grows: a JSON object a line, so that a file that was cut off opens as far as it goes; no Qt."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any


class RecordedLines:
    """Lines to append to a file. They stay in memory until :meth:`write`.

    ``count`` is their number of records, ``bytes`` what was written so far. The caller decides what a line contains.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = self.bytes = 0
        self._lines: list[str] = []
        self._busy = threading.Lock()

    def keep(self, *lines: str) -> None:
        """Lines for the next :meth:`write`, each with its end of line."""
        self._lines.extend(lines)

    def write(self) -> None:
        """Append the lines added since the last call to the file, in order. Writes to the disk; may be called in any
        thread.

        Raises ``OSError``; the lines of this call are lost then.
        """
        with self._busy:
            lines, self._lines = self._lines, []
            text = "".join(lines)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)
            self.bytes += len(text.encode())


def object_of(line: str) -> dict[str, Any]:
    """Return the object in ``line``; an empty one if there is none, or only its beginning."""
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
