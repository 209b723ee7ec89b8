"""Row and field menus of a view: go, follow, keep, export bytes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.codec.message import Unit
from engine.errors import StoreError
from engine.files.atomic_file import write_atomically
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import number
from viewer.runtime import places
from viewer.runtime.places import Place, Search
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.columns import elsewhere
from viewer.widgets.row_commands import Facts, sought

if TYPE_CHECKING:

    class RowHost(Protocol):
        """The parts of a view, or of the store's tree, that its row menus need."""

        session: StoreSession | None
        placeRequested: Any
        statusMessage: Any
        helpRequested: Any

        def commands(self) -> Mapping[str, Callable[[], object]]: ...
        def status(self) -> str: ...
        def window(self) -> QWidget: ...


COMMANDS = {"follow.next": "same.key.next", "keep.mark": "mark.toggle", "explain.body": "body.decode"}
"""The view's command for each menu command with another name."""
MAX_EXPORT_BYTES = 64 << 20
"""Longest exported stretch (bytes). A damaged one can be as long as a file."""


class RowCommands:
    """The row commands of one view."""

    def __init__(self, pane: RowHost) -> None:
        self._pane = pane

    def able(self) -> frozenset[str]:
        """Return the commands that act on the current row here."""
        return frozenset(self._pane.commands())

    def filter(self, action_name: str, term: str) -> None:
        """Filter the log by a condition; ``action_name``: see :data:`viewer.widgets.cell_filter.CONDITION_KINDS`."""
        self._pane.placeRequested.emit(places.filtered(action_name, term))

    def say(self, words: str) -> None:
        """Show a sentence in the status bar. An empty one restores the view's own."""
        self._pane.statusMessage.emit(words or self._pane.status())

    def do(self, command: str, facts: Facts) -> None:
        """Run a command. The menu offers only those that can run."""
        pane = self._pane
        place = _place(command, facts)
        if place is not None:
            pane.placeRequested.emit(place)
            return
        if command.startswith("go.") and isinstance(facts.link, Search) and pane.session is not None:
            pane.session.jobs.start(self._go_to_search(pane.session, facts.link, in_new_window=command == "go.own"))
            return
        commands: dict[str, Callable[[], object]] = {
            "keep.bookmark": lambda: self._bookmark(facts),
            "copy.cli": lambda: self._copy_command(facts),
            "copy.markdown": lambda: self._copy_markdown(facts),
            "bytes.export": lambda: self.ask_bytes(facts),
            "edit.offset": lambda: self._ask_edit("groupOffset", facts),
            "edit.entry": lambda: self._ask_edit("queueEntry", facts),
            "edit.remove": lambda: self._ask_edit("removeMessage", facts),
            "edit.cut": lambda: self._ask_edit("cutLog", facts),
            "explain.field": lambda: pane.helpRequested.emit(facts.finding.id),
        }
        if command in commands:
            commands[command]()
        else:
            self._in_log(COMMANDS.get(command, command), facts)

    async def _go_to_search(self, session: StoreSession, search: Search, *, in_new_window: bool) -> None:
        try:
            place, _note = await session.resolve(search)
        except (StoreError, OSError, LookupError, ValueError) as error:
            self.say(str(error))
            return
        if session is self._pane.session:
            self._pane.placeRequested.emit(elsewhere(place) if in_new_window else place)

    def _in_log(self, command: str, facts: Facts) -> None:
        """Run a command of the log: in this view if it has it, otherwise in the log at the row's place."""
        handler = self._pane.commands().get(command)
        session = self._pane.session
        if handler is not None:
            handler()
        elif session is not None and facts.offset is not None:
            session.wished = facts.offset, command
            self._pane.placeRequested.emit(places.log(facts.offset))

    def _ask_edit(self, kind: str, facts: Facts) -> None:
        """Ask for a change that becomes a patch, filled in with what the row says."""
        from viewer.pane.edit_box import ask_edit

        session = self._pane.session
        if session is None:
            return
        entry = "" if facts.queue_offset is None else number(facts.queue_offset)
        values = {
            "group": facts.group,
            "topic": facts.topic,
            "queue": "" if facts.queue_id is None else str(facts.queue_id),
            "entry": entry,
            "offset": entry if kind == "groupOffset" else "" if facts.offset is None else number(facts.offset),
        }
        ask_edit(self._pane.window(), session, kind, values, self.say)

    def _bookmark(self, facts: Facts) -> None:
        from viewer.pane.bookmark_box import ask_bookmark

        place = _row_place(facts)
        if place is not None and self._pane.session is not None:
            text = places.text_of(place)
            ask_bookmark(self._pane.window(), self._pane.session, text, text)

    def _copy_command(self, facts: Facts) -> None:
        session = self._pane.session
        if facts.command is not None and session is not None:
            QGuiApplication.clipboard().setText(session.command_line(shlex.split(facts.command)))

    def _copy_markdown(self, facts: Facts) -> None:
        from viewer.pane.finding_facts import finding_markdown

        QGuiApplication.clipboard().setText(finding_markdown(facts.finding))

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def ask_bytes(self, facts: Facts) -> QFileDialog:
        """Ask where to write the bytes."""
        pane = self._pane
        dialog = QFileDialog(pane.window(), tr("Export the bytes"), str(Path.home() / f"{facts.offset:020d}.bin"))
        dialog.setObjectName("bytes.dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("bin")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.export_bytes(facts, Path(path)))
        dialog.open()
        return dialog

    def export_bytes(self, facts: Facts, target: Path) -> None:
        """Write the bytes of the unit or stretch at the row's place into ``target``, outside the store."""
        session, say = self._pane.session, self._pane.statusMessage.emit
        if session is None or facts.offset is None:
            return
        offset, log = facts.offset, session.snapshot.log
        if in_store(session.path, target):
            say(tr("Nothing is written into the store: choose another folder."))
            return

        def work() -> int:
            size = facts.size
            if size is None:
                item = log.unit_at(offset, crc=False)
                size = item.size if isinstance(item, Unit) else 0
            content = log.read(offset, min(size, MAX_EXPORT_BYTES))
            write_atomically(target, content)
            return len(content)

        session.jobs.read(
            work,
            lambda count: say(
                tr_plural(
                    "{n:,} byte from {offset:,} on written to {path}",
                    "{n:,} bytes from {offset:,} on written to {path}",
                    n=count,
                    offset=offset,
                    path=str(target),
                )
            ),
            lambda error: say(f"{target}: {engine_words(str(error))}"),
        )


def _place(command: str, facts: Facts) -> Place | None:
    """Return the target of a command that goes somewhere, otherwise None."""
    if command == "go.link" and isinstance(facts.link, Place):
        return facts.link
    if command == "go.own" and facts.link is not None:
        new_window_place = elsewhere(facts.link)
        return new_window_place if isinstance(new_window_place, Place) else None
    if command == "keep.colour":
        return places.filtered("colour", facts.term or "")
    if command == "go.log" and facts.offset is not None:
        return places.log(facts.offset)
    if command == "go.own" and facts.offset is not None:
        new_window_place = elsewhere(places.log(facts.offset))
        return new_window_place if isinstance(new_window_place, Place) else None
    if command == "go.entry":
        return places.queue(facts.topic, facts.queue_id, facts.queue_offset)
    if command == "follow.trace":
        return places.trace(facts.topic, facts.key)
    if command == "follow.conversation":
        return Place("conversation", key=sought(facts))
    return Place("where", key=sought(facts)) if command == "follow.where" else None


def _row_place(facts: Facts) -> Place | None:
    """Return the place that a bookmark of the row stores."""
    if facts.offset is not None:
        return places.log(facts.offset)
    if isinstance(facts.link, Place):
        return facts.link
    return places.queue(facts.topic, facts.queue_id, facts.queue_offset) if facts.topic else None
