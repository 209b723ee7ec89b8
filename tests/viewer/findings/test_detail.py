"""The details of one finding: text, bytes, the command to type, and links."""

from __future__ import annotations

from broken_stores import group_barred, log
from handmade_stores import HandmadeStore, healthy
from panes import on_store, wait_until_idle
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollArea

from viewer.findings.pane import FindingsPane


def test_a_wrong_crc_is_shown_with_its_bytes_and_its_command(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for _ in range(20):
        store.put()
    root = store.write(tmp_path / "s")
    log(root, store.units[7].offset + 90, b"\xff")

    async def drive(pane, session) -> None:
        await wait_until_idle(session.jobs)
        finding = next(actual_finding for actual_finding in session.findings if actual_finding.id == "CL03")
        detail = pane.detail
        detail.show_finding(finding, session)
        await wait_until_idle(session.jobs)
        assert "CL03" in detail.head.note.text()
        assert not detail._hex_box.isHidden()
        emitted = []
        detail.placeRequested.connect(emitted.append)
        detail._go()
        assert emitted[0].offset == store.units[7].offset
        detail._copy()
        assert QGuiApplication.clipboard().text() == f"storescope check {root} --only CL03 --json"
        detail.show_finding(None, None, "Nothing is wrong.")
        assert detail._words.isHidden()

    on_store(qapp, FindingsPane, root, drive)


def test_a_long_step_is_wrapped(qapp, tmp_path) -> None:
    """The advice was wider than its pane by one line, so the step for a group without permission was cut off."""
    store = healthy()
    root = store.write(tmp_path / "s")
    group_barred(root, store)

    async def drive(pane, session) -> None:
        pane.resize(900, 600)
        await wait_until_idle(session.jobs)
        pane.detail.show_finding(next(finding for finding in session.findings if finding.id == "CF15"), session)
        inner = pane.detail.findChild(QScrollArea).widget()
        assert inner.minimumSizeHint().width() < 400

    on_store(qapp, FindingsPane, root, drive)
