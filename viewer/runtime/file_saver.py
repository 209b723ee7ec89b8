"""Read and write the window's own files about a store (marks, bookmarks, notes), which are outside of the store.

One thread writes them for all windows of the process, in the order of the requests. A request that waits is dropped
when a newer one for the same file arrives.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from engine.errors import StoreError
from engine.sentences import sentence

Finish = Callable[[Exception | None], None]
CLOSE_TIMEOUT_S = 30.0
"""Maximum seconds that the program waits at its end for open work: saving files, closing a lab store."""

VERSION = 1
"""Version of the form of the files that :func:`read_saved` reads."""


def read_saved(file: Path) -> dict[str, Any]:
    """Return the JSON object in ``file``; an empty one if there is no file or no object in it.

    Raises ``OSError`` if the file exists but cannot be read, and :class:`StoreError` if a newer version of the program
    has written it. Do not overwrite it then: its content is unknown.
    """
    try:
        document = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    version = document.get("version", VERSION)  # files of version 0.8 and before have none
    if not isinstance(version, int) or version > VERSION:
        raise StoreError(
            sentence(
                "expected a file of version {version}, found {value}: a newer Storescope has written it, and it stays "
                "as it is",
                version=VERSION,
                value=version,
            ),
            file=str(file),
        )
    return document


class FileSaver:
    """Writes files one after the other in a thread.

    Each request's ``finish`` is called once, in any thread: with the error, or with None if the file was written or if
    a newer request replaced this one.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "file-saver")
        self._lock = threading.Lock()
        self._waiting: dict[Path, tuple[Callable[[], object], Finish]] = {}

    def save(self, file: Path, write: Callable[[], object], finish: Finish) -> None:
        """Call ``write``, which writes ``file``, after all earlier requests. Drops a waiting request for ``file``."""
        with self._lock:
            replaced = self._waiting.get(file)
            self._waiting[file] = write, finish
        if replaced is None:
            self._pool.submit(self._write, file)
        else:
            replaced[1](None)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until all earlier requests are written. Raises ``TimeoutError`` after ``seconds``."""
        self._pool.submit(lambda: None).result(seconds)

    def _write(self, file: Path) -> None:
        with self._lock:
            write, finish = self._waiting.pop(file)
        try:
            write()
        except Exception as error:  # noqa: BLE001 (reported to the caller of `save`)
            finish(error)
        else:
            finish(None)


@cache
def file_saver() -> FileSaver:
    """Return the file saver of this process."""
    return FileSaver()
