"""Tools for the rows of the log: filters from cells and fields, saved and used filters, values for completion, and
the next unit of the same key, queue or transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from engine.codec.message import Unit
from engine.errors import BadFilter, StoreError
from viewer.log.filter_line import LAST_MINUTES, FilterLine
from viewer.log.log_model import LogModel
from viewer.log.unit_panes import UnitPanes
from viewer.look.assets import tr, words
from viewer.runtime.edit import Edit
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.cell_filter import CELL_COMMANDS, cell_term, combined
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession


FIVE_MINUTES = 300_000


class LogTools(QObject):
    """The filter line and the tools over it.

    Emits ``ruleRequested(filter)`` to colour rows; its other signals are those of a pane.
    """

    statusText = Signal(str)
    operationDone = Signal(str, str, object, str)
    edited = Signal(object)
    ruleRequested = Signal(str)

    def __init__(self, model: LogModel, table: RecordView, unit: UnitPanes) -> None:
        super().__init__(table)
        self._model, self._table, self._unit = model, table, unit
        self.line = line = FilterLine(self.known_values, self._meaning, self._used)
        self.settings: Settings | None = None
        self.session: StoreSession | None = None
        self._saved: tuple[tuple[str, str], ...] = ()
        line.pills.changed.connect(self._keep_saved)
        line.applied.connect(self._filter_used)
        table.termRequested.connect(self.take_term)
        unit.termRequested.connect(self.take_term)

    def use(self, settings: Settings) -> None:
        """Show a saved filter."""
        self.settings = settings
        if settings.saved_filters is not None:
            self.line.pills.show_saved(settings.saved_filters)
        self._saved = tuple(self.line.pills.saved)

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self.session = session
        if session is not None:
            session.later(lambda: session.jobs.read(lambda: sample(session.snapshot.log), self._sampled, _ignored))

    def _sampled(self, values: Values) -> None:
        self._model.values = values

    def commands(self) -> dict[str, Callable[[], object]]:
        """Filters by the chosen cell or field."""
        commands: dict[str, Callable[[], object]] = {
            name: partial(self._by_cell, action_name) for name, action_name in CELL_COMMANDS.items()
        }
        return commands | {"filter.save": self.line.pills.ask_name}

    # ---- filters from cells ------------------------------------------------------------------------------------------

    def chosen_term(self) -> str | None:
        """The field of the decoded unit where it has the focus, else the cell that is chosen, as a condition."""
        if self._unit.detail_in_focus:
            return self._unit.detail.term()
        table, row = self._table, self._table.current_row()
        column_number = table.currentIndex().column()
        if row is None or not 0 <= column_number < len(table.kind.columns):
            return None
        return cell_term("unit", table.kind.columns[column_number], row)

    def _by_cell(self, action_name: str) -> None:
        term = self.chosen_term()
        if term is None:
            self.statusText.emit(tr("A filter cannot search for this value."))
        else:
            self.take_term(action_name, term)

    def take_term(self, action_name: str, term: str) -> None:
        """Use a condition: apply it, add it, write it into the field, or copy it."""
        line = self.line
        if action_name == "copy":
            QGuiApplication.clipboard().setText(term)
            self.statusText.emit(tr("Copied {text}", text=term))
            return
        if action_name == "colour":
            self.ruleRequested.emit(term)
            return
        try:
            text = combined(line.in_force if action_name != "prepare" else line.text(), action_name, term)
        except BadFilter:
            text = term
        if action_name == "prepare":
            line.prepare(text)
        else:
            line.apply(text)

    def show_place(self, place: Place) -> None:
        """A filter that another view asks for."""
        if place.name:
            self.take_term(place.part or "only", place.name)

    # ---- saved, used, known ------------------------------------------------------------------------------------------

    def _keep_saved(self, saved: list[tuple[str, str]]) -> None:
        old_filters, new_filters = self._saved, tuple(saved)
        self._put_saved(new_filters)
        self.edited.emit(Edit(tr("saved filters"), old_filters, new_filters, self._put_saved))

    def _put_saved(self, saved: tuple[tuple[str, str], ...]) -> None:
        self._saved = saved
        if tuple(self.line.pills.saved) != saved:
            self.line.pills.show_saved(saved)
        if self.settings is not None:
            self.settings.saved_filters = list(saved)

    def _filter_used(self, text: str) -> None:
        if text and self.settings is not None:
            self.settings.remember_filter(text)
        if self.session is not None:
            command = ["storescope", "units", "STORE", *(["--where", text] if text else [])]
            line = self.session.command_line(command)
            self.operationDone.emit("filter.apply", tr("Apply the filter"), {"filter": text}, line)

    def known_values(self, field: str) -> Iterable[str]:
        """Texts that the store holds in ``field``; of ``properties`` the names, of ``body.`` fields of bodies."""
        survey = self.session.survey if self.session is not None else None
        if survey is not None and field == "topic":
            return [topic.name for topic in survey.topics]
        if self.session is not None and field == "file":
            return [file.name for file in self.session.snapshot.log.files]
        if self.session is not None and field == "body.":
            return list(self.session.body_fields)
        return self._model.values.get(field, ())

    def _used(self) -> Sequence[str]:
        return self.settings.filters if self.settings is not None else ()

    def _meaning(self, text: str) -> str:
        return self.last_minutes() if text == LAST_MINUTES else text

    def last_minutes(self) -> str:
        """The last five minutes of the log, whatever the clock says now."""
        from engine.query import condition

        survey = self.session.survey if self.session is not None else None
        last_ms = survey.last_time if survey is not None else None
        if last_ms is None:
            return "storeTimestamp > now - 5m"
        from datetime import datetime

        zone = datetime.now().astimezone().tzinfo
        return condition("storeTimestamp", last_ms - FIVE_MINUTES, zone=zone).replace(" = ", " >= ", 1)


def _ignored(_error: Exception) -> None:
    """Values are a help: a log that cannot be read says so in its table."""


PLACES, AT_EACH = 24, 40
"""Places of the log that are looked at, and units read at each: some hundred milliseconds on a cold disk."""
MAX_SAMPLES = 200
"""Values a field keeps: the most frequent ones."""
MAX_VALUE_CHARACTERS = 80
Values = dict[str, tuple[str, ...]]


def sample(log: LogReader) -> Values:
    """Sample field values: field → texts, most frequent first; ``properties`` has the names of properties."""
    counters: dict[str, Counter[str]] = {}
    start, end = max(log.min_offset, 0), max(log.max_offset, 0)
    step = max(1, (end - start) // PLACES)
    sampled_offsets: set[int] = set()
    for place in range(start, max(end, start + 1), step):
        try:
            for item in log.items(log.align(place), AT_EACH, crc=False):
                if isinstance(item, Unit) and item.offset not in sampled_offsets:
                    sampled_offsets.add(item.offset)
                    _add(counters, item)
        except StoreError:
            continue
    return {name: tuple(text for text, _ in counts.most_common(MAX_SAMPLES)) for name, counts in counters.items()}


def _add(counters: dict[str, Counter[str]], unit: Unit) -> None:
    def add(field: str, text: str | None) -> None:
        if text and len(text) <= MAX_VALUE_CHARACTERS:
            counters.setdefault(field, Counter())[text] += 1

    add("topic", unit.topic)
    add("tags", unit.tags)
    for key in unit.keys:
        add("keys", key)
    add("bornHost", unit.born_host)
    add("storeHost", unit.store_host)
    for name, value in unit.properties.items():
        add("properties", name)
        add(f"properties.{name}", value)


SAME_WORDS = {
    "key": words("the same key"),
    "queue": words("the same queue"),
    "transaction": words("the same transaction"),
}
WITHOUT = {
    "key": words("This row has no key."),
    "queue": words("This row is no message."),
    "transaction": words("This row belongs to no transaction."),
}


def same_term(relation: str, unit: Unit) -> str | None:
    """Return the filter that finds the units related to ``unit``; None if it has no such relation.

    A key is any of the unit's keys, or its unique key; a transaction's units point at the half message by offset and
    share its unique key.
    """
    from engine.query import condition, or_

    if relation == "queue":
        return f"{condition('topic', unit.topic)} and {condition('queueId', unit.queue_id)}"
    term = ""
    if relation == "key":
        for key in unit.keys:
            term = or_(term, condition("keys", key))
        if not term and unit.unique_key:
            term = condition("uniqueKey", unit.unique_key)
        return term or None
    from engine.query.fields import transaction_word

    word = transaction_word(unit.sys_flag, unit.topic)
    if word is None and "TRAN_MSG" not in unit.properties and not unit.prepared_transaction_offset:
        return None
    half = unit.prepared_transaction_offset or unit.offset
    term = or_(condition("physicalOffset", half), condition("preparedTransactionOffset", half))
    return or_(term, condition("uniqueKey", unit.unique_key)) if unit.unique_key else term


class SameValueCommands(QObject):
    """The commands over one table of units: ``stepRequested(filter, what, forward)``, ``filterRequested(filter)``,
    ``statusText(sentence)``.
    """

    stepRequested = Signal(str, str, bool)
    filterRequested = Signal(str)
    statusText = Signal(str)

    def __init__(self, table: RecordView) -> None:
        super().__init__(table)
        self._table = table
        self.session: StoreSession | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """Next, previous, and all."""
        commands: dict[str, Callable[[], object]] = {}
        for relation in SAME_WORDS:
            commands[f"same.{relation}.next"] = partial(self._with_unit, relation, partial(self._step, relation, 1))
            commands[f"same.{relation}.previous"] = partial(
                self._with_unit, relation, partial(self._step, relation, -1)
            )
            commands[f"same.{relation}.all"] = partial(self._with_unit, relation, self._all)
        return commands

    def _with_unit(self, relation: str, work: Callable[[str], None]) -> None:
        """Do ``work`` with the filter of what belongs to the chosen row; its unit is read off the loop."""
        row, session = self._table.current_row(), self.session
        if row is None or session is None:
            return

        def done(item: object) -> None:
            term = same_term(relation, item) if isinstance(item, Unit) else None
            if term is None:
                self.statusText.emit(tr(WITHOUT[relation]))
            else:
                work(term)

        log = session.snapshot.log
        session.jobs.read(lambda: log.unit_at(row.offset, crc=False), done)

    def _step(self, relation: str, step: int, term: str) -> None:
        self.stepRequested.emit(term, tr(SAME_WORDS[relation]), step > 0)

    def _all(self, term: str) -> None:
        self.filterRequested.emit(term)
