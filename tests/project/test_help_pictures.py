"""Pictures of the help keep their meaningful colours."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from PySide6.QtGui import QColor, QImage

SCRIPT = Path(__file__).parents[2] / "packaging" / "pictures.py"


def test_a_rare_colour_stays_among_many_greys() -> None:
    """The bar of a topic in the tree, some 50 px of it, came out in the colour of another topic, or grey."""
    spec = importlib.util.spec_from_file_location("pictures", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    width, height = 256, 120
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 256, (height, width, 1), dtype=np.uint8).repeat(3, axis=2)
    raw = (raw.astype(int) + rng.integers(0, 3, raw.shape)).clip(0, 255).astype(np.uint8)
    picture = QImage(np.ascontiguousarray(raw).data, width, height, width * 3, QImage.Format.Format_RGB888).copy()
    topics = [QColor("#CC79A7"), QColor("#8F7500"), QColor("#0072B2")]
    for index, colour in enumerate(topics):
        for y in range(12):
            for x in range(4):
                picture.setPixelColor(20 * index + x, 20 + y, colour)
    sample = pictures.few_colours(picture)
    assert sample.colorCount() <= 256
    assert [sample.pixelColor(20 * position + 2, 25).name() for position in range(3)] == [
        colour.name() for colour in topics
    ]
