"""A dozen pictures of the window, compared with tolerance: light and dark, English and Chinese.

The kept pictures (``tests/pictures``) are small: fonts differ between machines, layouts and colours do not.
``STORESCOPE_PICTURES=write`` makes them anew; look at them before you commit them.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from walker import Run, Walker

pytestmark = pytest.mark.journey
FOLDER = Path(__file__).parent.parent / "pictures"
WRITE = os.environ.get("STORESCOPE_PICTURES") == "write"
PLACES = {
    "log": "log:1310900",
    "queue": "queue:OrderPaid/2/100",
    "trace": "trace:ShipmentEvents/SO-000421",
    "findings": "findings:CL03",
    "where": "where:SO-000749",
    "groups": "groups",
}
LOOKS = (("light", "en"), ("dark", "zh_CN"))
WIDTH, HEIGHT = 200, 125
MEAN, FAR, FAR_SHARE = 7.0, 48, 0.06
"""Mean difference of a channel (of 255); how much is far; which share of the pixels may be."""


def small(walker: Walker) -> QImage:
    """Return a small picture of the window."""
    size = WIDTH, HEIGHT
    picture = (
        walker.window.grab()
        .toImage()
        .scaled(*size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation)
    )
    return picture.convertToFormat(QImage.Format.Format_RGB888)


def pixels(picture: QImage) -> NDArray[np.int16]:
    """Return an array of rows, columns and channels."""
    raw = np.frombuffer(picture.constBits(), np.uint8).reshape(picture.height(), picture.bytesPerLine())
    return raw[:, : picture.width() * 3].reshape(picture.height(), picture.width(), 3).astype(np.int16)


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("scheme", "language"), LOOKS)
def test_views_look_as_they_did(run: Run, walker: Walker, damaged: Path, scheme: str, language: str) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(damaged)
        await walker.act(f"theme.{scheme}")
        await walker.act(f"language.{language}")
        session = window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        texts = []
        for name, place in PLACES.items():
            assert await window.go_to_text(place)
            await asyncio.sleep(0.2)
            await walker.until(lambda: not window.pane(window.view).busy(), "it is answered")
            await walker.until(lambda: window.jobs.idle, "all work ends")
            await walker.rest()
            window.setFocus()
            await asyncio.sleep(0.5)
            file = FOLDER / f"{name}-{scheme}-{language}.png"
            picture = small(walker)
            if WRITE:
                assert picture.save(str(file))
                continue
            known_values = QImage(str(file)).convertToFormat(QImage.Format.Format_RGB888)
            assert (known_values.width(), known_values.height()) == (WIDTH, HEIGHT), file
            apart = np.abs(pixels(picture) - pixels(known_values))
            far = float((apart.max(axis=2) > FAR).mean())
            if apart.mean() > MEAN or far > FAR_SHARE:
                texts.append(f"{file.name}: mean {apart.mean():.1f}, {far:.1%} of the pixels are far")
        assert not texts, texts

    run(walk())
