"""Cycles with Qt objects die on the loop's thread, whoever allocates.

A closed store's session was collected by a reading thread; its timer stayed registered and the next tick ended the
process.
"""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from viewer.bridge.garbage import LoopGarbage


class Witness:
    """Notes in which thread it ended."""

    ended: list[threading.Thread] = []  # noqa: RUF012 (shared on purpose)

    def __del__(self) -> None:
        self.ended.append(threading.current_thread())


def test_threads_collect_nothing(dressed: QApplication) -> None:
    Witness.ended.clear()
    garbage = LoopGarbage()
    holder = QObject()
    holder.me, holder.witness = holder, Witness()  # type: ignore[attr-defined]
    del holder
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: [[] for _ in range(200_000)]).result()
    assert Witness.ended == []
    garbage.turn()
    garbage.end()
    assert Witness.ended == [threading.current_thread()]
    assert gc.isenabled()
