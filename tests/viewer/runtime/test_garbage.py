"""Cycles with Qt objects are collected on the loop's thread, whatever thread allocates.

A closed store's session was collected by a reading thread. Its timer stayed registered, and the next tick crashed the
process.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication

from viewer.runtime.garbage import LoopGarbage, set_aside, take_back_later


class ThreadWitness:
    """Records the thread in which it was deleted."""

    ended: list[threading.Thread] = []  # noqa: RUF012 (shared on purpose)

    def __del__(self) -> None:
        self.ended.append(threading.current_thread())


@pytest.fixture
def automatic() -> Iterator[None]:
    """Let Python collect automatically, as at the program's start."""
    gc.enable()
    yield
    gc.disable()


def test_threads_collect_nothing(themed_app: QApplication, automatic: None) -> None:
    ThreadWitness.ended.clear()
    garbage = LoopGarbage()
    assert not gc.isenabled()
    holder = QObject()
    holder.me, holder.witness = holder, ThreadWitness()  # type: ignore[attr-defined]
    del holder
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: [[] for _ in range(200_000)]).result()
    assert ThreadWitness.ended == []
    garbage.turn()
    garbage.end()
    assert ThreadWitness.ended == [threading.current_thread()]
    assert gc.isenabled()


def test_disabled_collection_stays_disabled() -> None:
    """The tests collect between each other. A window that ends must not enable collection in other threads again."""
    assert not gc.isenabled()
    LoopGarbage().end()
    assert not gc.isenabled()


def test_frozen_garbage_is_collected_while_the_user_is_idle(
    themed_app: QApplication,
) -> None:
    """A change of language traversed the 400,000 objects of five windows: a click took 0.2 to 0.4 s."""
    ThreadWitness.ended.clear()
    garbage = LoopGarbage()
    holder = QObject()
    holder.me, holder.witness = holder, ThreadWitness()  # type: ignore[attr-defined]
    set_aside()
    del holder
    take_back_later()
    garbage.on_state_changed(Qt.ApplicationState.ApplicationActive)
    gc.collect()
    assert ThreadWitness.ended == []
    garbage.on_state_changed(Qt.ApplicationState.ApplicationInactive)
    assert garbage._away.isActive()
    garbage.on_state_changed(Qt.ApplicationState.ApplicationActive)
    assert not garbage._away.isActive(), "another window of the program came to the front"
    assert ThreadWitness.ended == []
    garbage.on_state_changed(Qt.ApplicationState.ApplicationInactive)
    garbage._away.timeout.emit()
    assert ThreadWitness.ended == [threading.current_thread()]
    assert not LoopGarbage.due
    garbage.end()
