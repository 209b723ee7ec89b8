"""The sample stores of the welcome page: :mod:`engine.inspection.samples`, unpacked to the desktop's cache. No Qt.

Archives are read by libraries that a window on a store does not need: they are loaded when a sample is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.inspection.samples import Sample


def samples() -> list[Sample]:
    """The samples that come with the program."""
    from engine.inspection import samples as engine

    return engine.samples()


def unpacked(item: Sample, cache: Path) -> Path:
    """The store directory of the sample, unpacked below ``cache`` where it is not there yet; whole or not at all."""
    from engine.inspection import samples as engine

    return engine.sample(item.name, cache)
