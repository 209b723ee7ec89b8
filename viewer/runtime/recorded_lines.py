"""A recording that grows: a JSON object a line, so that a file that was cut off opens as far as it goes; no Qt."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any


class RecordedLines:
    """Lines for the end of a file: kept as they come, until :meth:`write`.

    ``count`` is how many records they tell of, ``bytes`` what was written; whoever records says what a line is.
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
        """Append what has come since the last time to the file, in the order it came; touches the disk.

        May be called in any thread. Raises ``OSError``; what was to be written then is lost.
        """
        with self._busy:
            lines, self._lines = self._lines, []
            text = "".join(lines)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)
            self.bytes += len(text.encode())


def object_of(line: str) -> dict[str, Any]:
    """The object that stands in ``line``; an empty one where none does, or only the beginning of one."""
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
