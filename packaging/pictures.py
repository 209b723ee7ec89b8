"""The pictures of the README, made by the program itself; they land in ``resources/pictures``.

``storescope view STORE --drive packaging/pictures.py --size 1600x1000 --theme light``, where ``STORE`` is the sample
``orders``.
"""

import asyncio
from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit

PLACES = {"log": "log:8193", "trace": "trace:StockReserved/AaAa"}


async def drive(window):
    """Go to each place and save what stands there once nothing is under way."""
    here = Path(__file__).parent.parent / "resources" / "pictures"
    for name, place in PLACES.items():
        window.findChild(QAction, "go.to").trigger()
        box = window.findChild(QLineEdit, "goto.field")
        box.setText(place)
        box.returnPressed.emit()
        await asyncio.sleep(0.5)
        assert await window.settled(60, quiet=True)
        window.setFocus()
        await asyncio.sleep(0.5)
        assert window.grab().save(str(here / f"{name}.png")), name
