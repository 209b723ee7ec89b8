"""Reads and writes the files that the window keeps about a store, outside of the store; one thread writes them in
order.

All windows of the process share it: of two states of a file the later one lands last, and one that was overtaken before
its turn is not written at all.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

Finish = Callable[[Exception | None], None]
LAST_SECONDS = 30.0
"""How long the end waits for what must still be done: a disk, a lab store that is being closed."""


def read_kept(file: Path) -> dict[str, Any]:
    """The JSON object in ``file``; nothing where it is not there or holds none. Raises ``OSError`` where it is there
    and cannot be read: what it holds is not known then, and not to be replaced.
    """
    try:
        document = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class FileSaver:
    """Writes states of files one after the other. ``finish`` of each is called once, in any thread: with the error, or
    with None where the state was written or overtaken.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "file-saver")
        self._lock = threading.Lock()
        self._waiting: dict[Path, tuple[Callable[[], object], Finish]] = {}

    def keep(self, file: Path, write: Callable[[], object], finish: Finish) -> None:
        """Have ``write`` put the newest state into ``file`` when its turn has come."""
        with self._lock:
            overtaken = self._waiting.get(file)
            self._waiting[file] = write, finish
        if overtaken is None:
            self._pool.submit(self._write, file)
        else:
            overtaken[1](None)

    def settle(self, seconds: float | None = None) -> None:
        """Wait until everything is written that was to be kept so far; raises ``TimeoutError`` after ``seconds``."""
        self._pool.submit(lambda: None).result(seconds)

    def _write(self, file: Path) -> None:
        with self._lock:
            write, finish = self._waiting.pop(file)
        try:
            write()
        except Exception as error:  # noqa: BLE001 (carried to whoever wanted it kept)
            finish(error)
        else:
            finish(None)


@cache
def file_saver() -> FileSaver:
    """The one of this process."""
    return FileSaver()
