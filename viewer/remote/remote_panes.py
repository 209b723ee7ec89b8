"""The detail of a message at a broker: that of the Log view, without links into the open store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from viewer.log.rows import LogRow, UnitRow
from viewer.log.unit_panes import LoadedRow, UnitPanes
from viewer.look.assets import tr

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.remote.remote_session import RemoteSession
    from viewer.runtime.store_session import StoreSession

NAMES = ("detail", "hex", "body", "inspector", "tabs")


class RemotePanes(UnitPanes):
    """``origin`` says whose log the physical offsets are in."""

    origin = ""

    def begin(self, session: RemoteSession) -> None:
        """Show units of this connection; called once."""
        self.detail.has_links = False
        for name in NAMES:
            getattr(self, name).setObjectName(f"remote.{name}")  # the names without it are those of the Log view
        self.set_session(cast("StoreSession", session))  # has what these panes need of one
        session.decodingChanged.connect(self.decode_again)

    def show_row(self, row: LogRow | None, field: str = "") -> None:
        """Show ``row``; the bytes around it are not here."""
        log = self.session.snapshot.log if self.session is not None else None
        if isinstance(row, UnitRow) and log is not None:
            log.min_offset, log.end_offset = row.offset, row.end  # type: ignore[misc]  # a RemoteLog's
        super().show_row(row, field)

    def load_row(self, snapshot: StoreSnapshot, row: LogRow) -> LoadedRow:
        """Decode a row, pulled again if its bytes are not kept; in a thread."""
        loaded = super().load_row(snapshot, row)
        if loaded.decoded is None:
            return replace(loaded, problem=tr("The broker does not have this message any more."))
        return replace(loaded, decoded=replace(loaded.decoded, origin=self.origin))

    def read_traces(self, _generation: int, _loaded: LoadedRow) -> None:
        """Traces are not searched at a broker."""
