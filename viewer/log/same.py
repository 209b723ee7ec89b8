"""Next of the same: the next unit of the same key, queue or transaction, and all of them as a filter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from engine.codec.message import Unit
from viewer.look.assets import tr, words
from viewer.runtime.store_session import StoreSession
from viewer.widgets.record_view import RecordView

WHATS = {"key": words("the same key"), "queue": words("the same queue"), "transaction": words("the same transaction")}
WITHOUT = {
    "key": words("This row has no key."),
    "queue": words("This row is no message."),
    "transaction": words("This row belongs to no transaction."),
}


def same_term(what: str, unit: Unit) -> str | None:
    """The filter that finds what belongs together with ``unit``; None where it has no such thing.

    A key is any of the unit's keys, or its unique key; a transaction's units point at the half message by offset and
    share its unique key.
    """
    from engine.query import condition, or_

    if what == "queue":
        return f"{condition('topic', unit.topic)} and {condition('queueId', unit.queue_id)}"
    found = ""
    if what == "key":
        for key in unit.keys:
            found = or_(found, condition("keys", key))
        if not found and unit.unique_key:
            found = condition("uniqueKey", unit.unique_key)
        return found or None
    from engine.query.fields import transaction_word

    word = transaction_word(unit.sys_flag, unit.topic)
    if word is None and "TRAN_MSG" not in unit.properties and not unit.prepared_transaction_offset:
        return None
    half = unit.prepared_transaction_offset or unit.offset
    found = or_(condition("physicalOffset", half), condition("preparedTransactionOffset", half))
    return or_(found, condition("uniqueKey", unit.unique_key)) if unit.unique_key else found


class LogSame(QObject):
    """The commands over one table of units: ``stepWanted(filter, what, forward)``, ``filterWanted(filter)``,
    ``told(sentence)``.
    """

    stepWanted = Signal(str, str, bool)
    filterWanted = Signal(str)
    told = Signal(str)

    def __init__(self, table: RecordView) -> None:
        super().__init__(table)
        self._table = table
        self.session: StoreSession | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """Next, previous, and all."""
        found: dict[str, Callable[[], object]] = {}
        for what in WHATS:
            found[f"same.{what}.next"] = partial(self._with_unit, what, partial(self._step, what, 1))
            found[f"same.{what}.previous"] = partial(self._with_unit, what, partial(self._step, what, -1))
            found[f"same.{what}.all"] = partial(self._with_unit, what, self._all)
        return found

    def _with_unit(self, what: str, work: Callable[[str], None]) -> None:
        """Do ``work`` with the filter of what belongs to the chosen row; its unit is read off the loop."""
        row, session = self._table.current_row(), self.session
        if row is None or session is None:
            return

        def done(item: object) -> None:
            term = same_term(what, item) if isinstance(item, Unit) else None
            if term is None:
                self.told.emit(tr(WITHOUT[what]))
            else:
                work(term)

        log = session.snapshot.log
        session.jobs.read(lambda: log.unit_at(row.offset, crc=False), done)

    def _step(self, what: str, step: int, term: str) -> None:
        self.stepWanted.emit(term, tr(WHATS[what]), step > 0)

    def _all(self, term: str) -> None:
        self.filterWanted.emit(term)
