"""The sample stores of the welcome page: :mod:`engine.inspection.samples`, unpacked to the desktop's cache. No Qt."""

from __future__ import annotations

from pathlib import Path

from engine.inspection.samples import Sample, sample, samples

__all__ = ["Sample", "samples", "unpacked"]


def unpacked(item: Sample, cache: Path) -> Path:
    """The store directory of the sample, unpacked below ``cache`` where it is not there yet; whole or not at all."""
    return sample(item.name, cache)
