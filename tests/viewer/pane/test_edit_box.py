"""A change by hand is staged as a patch; the store stays as it is."""

from __future__ import annotations

import golden_stores
from handmade_stores import healthy
from panes import on_store, wait_until, wait_until_idle

from engine.codec.message import Unit
from viewer.pane import Pane
from viewer.pane.edit_box import ask_edit, edit_menu
from viewer.pane.edit_kinds import EDIT_KINDS


def test_bytes_are_typed_as_digits_or_as_a_number_and_staged(qapp, tmp_path) -> None:
    root = healthy().write(tmp_path / "store")
    before = golden_stores.fingerprint(root)

    async def drive(pane, session) -> None:
        unit = next(item for item in session.snapshot.log.walk() if isinstance(item, Unit))
        said = []
        values = {"offset": "16", "bytes": "00 00 00 00", "unit": str(unit.offset)}
        box = ask_edit(pane, session, "logBytes", values, said.append)
        assert (box.number.text(), box.tick.isChecked()) == ("0", True)
        box.number.setText("-2")
        box.number.textEdited.emit("-2")
        assert box.fields["bytes"].text() == "FF FF FF FE"
        box.fields["bytes"].setText("0")
        box.stage()
        await wait_until(lambda: bool(box.fault.text()))
        assert "hexadecimal" in box.fault.text()
        assert session.bench.edits == ()
        box.fields["bytes"].setText("00 00 00 07")
        await session.read_anew(())
        box.stage()
        await wait_until(lambda: session.bench.edits != ())
        assert said[-1].startswith("Staged: Change bytes of the log: 16")
        assert session.bench.undo_title in said[-1]
        again = ask_edit(pane, session, "logBytes", values | {"bytes": "00 00 00 07"}, said.append)
        again.stage()
        await wait_until(lambda: bool(again.fault.text()))
        assert again.fault.text() == "Nothing changes: it is so already."
        again.reject()
        await session.read_anew(session.bench.edits)
        third = ask_edit(pane, session, "checkpoint", {"field": "physicMsgTimestamp", "number": "1764409000000"})
        third.stage()
        await wait_until(lambda: len(session.patches) == 2)
        await wait_until_idle(session.jobs)
        asked = []
        menu = edit_menu(pane, asked.append)
        for action in menu.actions():
            action.trigger()
        assert asked == [kind.id for kind in EDIT_KINDS]

    on_store(qapp, Pane, root, drive)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
