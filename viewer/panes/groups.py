"""Consumer groups: how far each came in each queue, as the offset tables say it, held against the queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from viewer.assets import tr, words
from viewer.bridge import places
from viewer.bridge.places import Place
from viewer.models.columns import (
    Chip,
    RecordKind,
    chip_column,
    field_of,
    gutter,
    moment_column,
    number_column,
    text_column,
    topic_column,
)
from viewer.panes import Pane
from viewer.panes.copying import command_copier, table_commands
from viewer.panes.table_reading import read_into
from viewer.widgets.kit import PaneHead, stacked
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.groups import GroupProgress
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.bridge.store_session import StoreSession

STATES = {
    "behind": Chip("note", words("behind")),
    "caughtUp": Chip("ok", words("caught up")),
    "beyondMax": Chip("error", words("beyond the end")),
    "belowMin": Chip("warn", words("below the beginning")),
    "gone": Chip("out", words("queue is gone")),
}


def _queue_place(row: GroupProgress) -> Place | None:
    return places.queue(row.topic, row.queue_id, row.offset) if row.state not in {"gone", "beyondMax"} else None


def _state(row: GroupProgress) -> Chip:
    chip = STATES.get(row.state, Chip("chat", row.state))
    return Chip(chip.kind, tr(chip.word))


_JSON = ("group", "topic", "queueId", "offset", "maxOffset", "behind", "oldestUnreadTimestamp", "state", "mode")
GROUPS = RecordKind(
    "groupProgress",
    (
        gutter(12),
        text_column("group", words("Group"), 200, elide="middle"),
        topic_column(width=220, jump=lambda row: places.queue(row.topic)),
        number_column("queueId", words("Queue"), 64),
        number_column("offset", words("Next offset"), 130, jump=_queue_place),
        number_column("maxOffset", words("Queue's end"), 130),
        number_column("behind", words("Behind"), 110),
        chip_column("state", words("State"), 170, _state),
        moment_column("oldestUnreadTimestamp", words("Oldest unread"), 186),
        text_column("mode", words("Mode"), 100),
    ),
    verdict=lambda row: _state(row).word,
    record=lambda row: {"type": "groupProgress"} | {key: field_of(key)(row) for key in _JSON},
    command=lambda _row: ["storescope", "groups", "STORE"],
)


class GroupsPane(Pane):
    """One table over all groups and queues."""

    view_id = "groups"
    title = "Consumer groups"

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("groups.pane")
        self._wanted = ""
        self._said = ""
        self.head = PaneHead(tr("Consumer groups"), tr("config/consumerOffset.json against the queues"))
        self.table = RecordView("groups.table", GROUPS)
        self.table.setAccessibleName(tr("Consumer groups"))
        self.table.placeRequested.connect(self.placeRequested)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(stacked(self.head, self.table, self.table.strip))

    def set_session(self, session: StoreSession | None) -> None:
        """Read the tables of another store when they are asked for."""
        super().set_session(session)
        self.table.copier = None if session is None else command_copier(self.table, str(session.path))
        self.table.set_rows([])
        self._said = ""

    def show_place(self, place: Place) -> None:
        """All groups, or one chosen."""
        self._wanted = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again."""
        read_into(self, self.table, _read, self._fill)

    def _fill(self, rows: list[GroupProgress]) -> None:
        self.table.set_rows(rows)
        groups = len({row.group for row in rows})
        behind = sum(row.behind for row in rows)
        self._said = tr("{groups:,} groups, {queues:,} offsets, {behind:,} messages behind", groups=groups,
                        queues=len(rows), behind=behind)  # fmt: skip
        self.statusMessage.emit(self._said)
        empty = State("empty", tr("No group has an offset in this store. Looked at: consumerOffset.json and its .bak"))
        self.table.set_state(None if rows else empty)
        if self._wanted:
            at = next((number for number, row in enumerate(rows) if row.group == self._wanted), None)
            if at is not None:
                self.table.go_to_row(at)

    def retheme(self) -> None:
        """Fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """What the table holds."""
        return self._said

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping."""
        return table_commands(self, lambda: self.table, "groups.jsonl")


def _read(store: StoreSnapshot) -> list[GroupProgress]:
    from engine.inspection.groups import group_progress

    return list(group_progress(store))
