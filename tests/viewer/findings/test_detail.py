"""One finding taken apart: words, bytes, the command to type, and links."""

from __future__ import annotations

from broken_stores import log
from made_stores import MadeStore
from panes import on_store, settled
from PySide6.QtGui import QGuiApplication

from viewer.findings.pane import FindingsPane


def test_a_wrong_crc_is_told_with_its_bytes_and_its_command(qapp, tmp_path) -> None:
    made = MadeStore()
    for _ in range(20):
        made.put()
    root = made.write(tmp_path / "s")
    log(root, made.units[7].offset + 90, b"\xff")

    async def drive(pane, session) -> None:
        await settled(session.jobs)
        one = next(found for found in session.findings if found.id == "CL03")
        detail = pane.detail
        detail.show_finding(one, session)
        await settled(session.jobs)
        assert "CL03" in detail.head.note.text()
        assert not detail._hex_box.isHidden()
        asked = []
        detail.placeRequested.connect(asked.append)
        detail._go()
        assert asked[0].offset == made.units[7].offset
        detail._copy()
        assert QGuiApplication.clipboard().text() == f"storescope check {root} --only CL03 --json"
        detail.show_finding(None, None, "Nothing is wrong.")
        assert detail._words.isHidden()

    on_store(qapp, FindingsPane, root, drive)
