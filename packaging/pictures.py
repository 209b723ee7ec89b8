"""The pictures of the README and of the help pages, made by the program itself; they land in ``resources/pictures``.

``storescope view STORE --drive packaging/pictures.py --size 1440x900 --theme light``, where ``STORE`` is the sample
``orders``; the sample ``orders-damaged`` is opened by the script.
"""

import asyncio
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QLineEdit

from engine.inspection.samples import sample

WHOLE = {"log": "log:8193", "trace": "trace:StockReserved/AaAa", "groups": "groups"}
DAMAGED = {"findings": "findings:CL03", "where": "where:SO-000749", "positions": "positions"}
WIDTH = 1440


async def drive(window):
    """Go to each place and save what stands there once nothing is under way."""
    for place in WHOLE.items():
        await picture(window, *place)
    await window.open(sample("orders-damaged"))
    while not window.session.findings_complete:  # noqa: ASYNC110 (the check runs in another process)
        await asyncio.sleep(0.1)
    for place in DAMAGED.items():
        await picture(window, *place)


async def picture(window, name, place):
    """Save the window at ``place`` as ``name``."""
    window.findChild(QAction, "go.to").trigger()
    box = window.findChild(QLineEdit, "goto.field")
    box.setText(place)
    box.returnPressed.emit()
    await asyncio.sleep(1.0)
    assert await window.settled(60, quiet=True)
    window.setFocus()
    await asyncio.sleep(0.7)
    folder = Path(__file__).parent.parent / "resources" / "pictures"
    grabbed = window.grab().toImage()
    if grabbed.width() > WIDTH:
        grabbed = grabbed.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
    assert few_colours(grabbed).save(str(folder / f"{name}.png")), name


def few_colours(picture):
    """The picture in 256 of its colours, the others as the nearest of those: a third of the size, no dots."""
    picture = picture.convertToFormat(QImage.Format.Format_RGB32)
    raw = np.frombuffer(picture.constBits(), np.uint32).reshape(picture.height(), -1) & 0xFFFFFF
    colours, where, counts = np.unique(raw, return_inverse=True, return_counts=True)
    parts = np.stack([colours >> shift & 255 for shift in (16, 8, 0)], 1).astype(np.int64)
    chosen, nearest = missed_most(parts, counts, 256)
    indexed = np.ascontiguousarray(nearest.astype(np.uint8)[where].reshape(raw.shape))
    made = QImage(indexed.data, indexed.shape[1], indexed.shape[0], indexed.shape[1], QImage.Format.Format_Indexed8)
    made.setColorTable([int(colour) | 0xFF000000 for colour in colours[chosen]])
    return made.copy()


def missed_most(parts, counts, most):
    """Colours one after the other, each time the one that is worst off with those before: a rare colour that is like no
    other stays (a topic's bar in the tree became another topic's), shades of grey give way. Which, and for each the
    nearest of them.
    """
    far, nearest, chosen = np.full(len(parts), 1 << 20), np.zeros(len(parts), int), []
    for number in range(min(most, len(parts))):
        at = int((counts * far).argmax())
        chosen.append(at)
        away = ((parts - parts[at]) ** 2).sum(1)
        nearer = away < far
        far[nearer], nearest[nearer] = away[nearer], number
    return chosen, nearest
