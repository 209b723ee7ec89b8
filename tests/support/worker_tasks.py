"""Work for the viewer's worker process."""

from __future__ import annotations

import os
import sys
import time
from typing import Any


def count(control: Any, up_to: int) -> int:
    """Emit 0 … up_to − 1 one by one, give their sum."""
    for number in range(up_to):
        control.emit([number])
    return sum(range(up_to))


def has_qt(_control: Any) -> bool:
    """Whether Qt was loaded here."""
    return any(name.startswith("PySide6") for name in sys.modules)


def fail(_control: Any, words: str) -> None:
    """Raise."""
    raise ValueError(words)


def endless(control: Any) -> None:
    """Run until stopped."""
    done = 0
    while True:
        control.check()
        done += 1
        control.report(done)
        time.sleep(0.005)


def die(_control: Any) -> None:
    """End the whole process."""
    os._exit(3)
