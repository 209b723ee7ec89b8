"""Stores changed by commands, the kept files, and the comparison after an undo."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_stores
from handmade_stores import healthy

from engine.cli.main import main


class KilledByTest(BaseException):
    """Stops like ``kill -9``: no clean-up runs."""


class KillAtCall:
    """Wraps functions: the call of this number, counted over all of them, raises :class:`KilledByTest`."""

    def __init__(self, number: int) -> None:
        self._calls_before_kill = number

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self._calls_before_kill -= 1
            if self._calls_before_kill == 0:
                raise KilledByTest
            return function(*arguments, **options)

        return call


def release_of_store(name: str) -> str:
    return golden_stores.release_of(name)


def kept_in(place: Path) -> list[Path]:
    return sorted(place.glob("*.kept-*"))


def same(store: Path, fingerprint: golden_stores.Fingerprint) -> list[str]:
    return golden_stores.changes(fingerprint, golden_stores.fingerprint(store))


def undone(store: Path, fingerprint: golden_stores.Fingerprint) -> None:
    (folder,) = kept_in(store.parent)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
    assert same(store, fingerprint) == []


def store_to_recover(root: Path) -> Path:
    """Return a store that recovery cuts, deletes files of and dispatches again, small enough to try every step."""
    root = healthy().write(root)
    log = max((root / "commitlog").iterdir())
    data = log.read_bytes()
    used = len(data.rstrip(b"\0"))
    log.write_bytes(data[: used - 200] + b"torn" * 50 + data[used:])
    queue = root / "consumequeue" / "Orders" / "0"
    (queue / f"{int(max(file.name for file in queue.iterdir())) + 400:020d}").write_bytes(bytes(400))
    shutil.rmtree(root / "consumequeue" / "Payments" / "1")
    (root / "abort").write_text("4711")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{}}')
    return root
