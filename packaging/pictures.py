"""The pictures of the documentation, made by the program itself; they land in ``resources/docs/pictures``, those of
another language than English in ``resources/docs/LANGUAGE/pictures``.

``storescope view STORE --drive packaging/pictures.py --size 1440x900 --theme light --lang en``, and once more with
``--lang zh_CN``, where ``STORE`` is the sample
``orders``; the sample ``orders-damaged`` is opened by the script, which also serves a broker with clients for the
pictures of a cluster.
"""

import asyncio
import tempfile
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QLineEdit

from engine.broker.serving import serving_beside
from engine.inspection.samples import sample
from viewer.cluster.cluster_model import Selection
from viewer.look.assets import language

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
    with tempfile.TemporaryDirectory() as folder, serving_beside(Path(folder) / "store") as addresses:
        await cluster(window, addresses.namesrv)


async def cluster(window, names):
    """Clients of its own at a broker of its own; one of the consumers is slow, and killed for the second picture."""
    await go(window, f"cluster:{names}")
    pane = window.panes["cluster"]
    model, own = pane.model, pane.watch.own
    orders = [own.add("producer", (names,), "order-service", "OrderPaid", rate).spec.number for rate in (150, 90)]
    stock = own.add("producer", (names,), "stock-service", "StockReserved", 80).spec.number
    await until(lambda: all(own.rows[number].sent for number in (*orders, stock)))
    billing = [own.add("consumer", (names,), "billing", "OrderPaid", 0).spec.number for _ in range(3)]
    ledger = [own.add("consumer", (names,), "ledger", "StockReserved", 0).spec.number for _ in range(2)]
    await until(lambda: all(own.rows[number].status == "running" for number in (*billing, *ledger)))
    slow = own.rows[billing[2]]
    own.slow(slow.spec.number, 2.0)
    await until(lambda: (client := model.find_client("billing", slow.client_id)) and (client.lag or 0) > 900, 300)
    pane.choose(Selection("client", slow.client_id, "billing"))
    await save(window, "cluster")
    pane.clients.end_selected(kill=True)
    pane.tabs.choose("rebalance")
    pane.choose(Selection("group", "billing"))
    await until(lambda: any(step.departed and step.moved for step in pane.rebalance.line.steps))
    await asyncio.sleep(20)
    pane.rebalance.choose_step(next(step.number for step in pane.rebalance.line.steps if step.departed) - 1)
    await save(window, "rebalance")
    pane.watch.end()
    own.close()


async def until(true, seconds=90):
    """Wait for something that happens by itself."""
    for _ in range(seconds * 20):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("timed out")


async def go(window, place):
    """Go to ``place`` as a person would."""
    window.findChild(QAction, "go.to").trigger()
    box = window.findChild(QLineEdit, "goto.field")
    box.setText(place)
    box.returnPressed.emit()
    await asyncio.sleep(1.0)


async def picture(window, name, place):
    """Save the window at ``place`` as ``name``."""
    await go(window, place)
    assert await window.settled(240, quiet=True), name
    await save(window, name)


async def save(window, name):
    """Save what stands in the window as ``name``."""
    window.setFocus()
    await asyncio.sleep(0.7)
    docs = Path(__file__).parent.parent / "resources" / "docs"
    folder = (docs if language() == "en" else docs / language()) / "pictures"
    folder.mkdir(exist_ok=True)
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
