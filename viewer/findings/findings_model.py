"""The state of the findings view: rows, severities, opened causes, and the progress of the check. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from engine.rules.findings import SEVERITIES, Finding
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import size, span
from viewer.pane.finding_facts import log_offset
from viewer.pane.finding_rows import FindingRow, finding_rows
from viewer.widgets.table_state import TableState

CHECK_AGAIN, CHECK_NOW, STOP = "check again", "check now", "stop"
"""Next steps of a :class:`TableState`."""


@dataclass(frozen=True, slots=True)
class CheckedStore:
    """The store as far as the view needs it. ``findings`` begin with those for unread files."""

    findings: tuple[Finding, ...] = ()
    complete: bool = False
    """True if every rule examined the whole store."""
    is_whole: bool = True
    """False for a log by itself."""
    log_bytes: int = 0
    has_unread: bool = False
    has_unreadable: bool = False
    """True if files cannot be read. False if parts are only not decoded."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes that the running check has done and has to do, and its seconds so far."""

    done: float
    total: float | None
    seconds: float


@dataclass
class FindingsModel:
    """Findings of one store as the user chose to see them."""

    store: CheckedStore | None = None
    rows: list[FindingRow] = field(default_factory=list)
    shown: frozenset[str] = frozenset(SEVERITIES)
    """Severities that are shown."""
    time: tuple[int, int] | None = None
    """The only time, [begin, end) ms, whose findings are shown; None: all."""
    times: Callable[[Sequence[Finding]], Sequence[tuple[int, int] | None]] = lambda findings: [None] * len(findings)
    """Returns the time of each finding."""
    opened: frozenset[str] = frozenset()
    """Rules of causes whose consequences are shown."""
    running: bool = False
    stale: bool = False
    """True if the store has grown since it was checked."""
    checked_bytes: int = 0
    error: str = ""
    """The reason why the last check ended early."""

    # ---- rows --------------------------------------------------------------------------------------------------------

    def open(self, store: CheckedStore | None) -> None:
        """Show another store, or none."""
        self.running, self.stale, self.error, self.opened, self.time = False, False, "", frozenset(), None
        self.set_store(store)

    def set_store(self, store: CheckedStore | None) -> None:
        """Set the store with its newest findings."""
        self.store = store
        self.rows = finding_rows(self._of_time(), self.shown, self.opened)

    def _of_time(self) -> Sequence[Finding]:
        """Return the findings of the chosen time."""
        if self.time is None:
            return self.findings
        begin, end = self.time
        times = zip(self.findings, self.times(self.findings), strict=True)
        return [finding for finding, time in times if time is not None and time[0] < end and begin < time[1]]

    @property
    def findings(self) -> Sequence[Finding]:
        """Findings of every severity."""
        return self.store.findings if self.store is not None else ()

    def count_of(self, severity: str) -> int:
        """Return the number of findings of a severity, shown or not."""
        return sum(finding.severity == severity for finding in self.findings)

    def show_only(self, severities: Collection[str]) -> None:
        """Leave out the findings of other severities."""
        self.shown = frozenset(severities)
        self.set_store(self.store)

    def show_time(self, time: tuple[int, int] | None) -> None:
        """Leave out the findings of another time, and those without one; None shows all."""
        self.time = time
        self.set_store(self.store)

    def toggle_cause(self, rule: str) -> None:
        """Show or hide the consequences of a cause."""
        self.opened ^= {rule}
        self.set_store(self.store)

    def find(self, rule: str) -> int | None:
        """Return the row of a rule's first finding. If it is hidden below its cause, the cause is opened first."""
        index = self._row_of(rule)
        cause = "" if index is not None else self._cause_of(rule)
        if cause:
            self.opened |= {cause}
            self.set_store(self.store)
            index = self._row_of(rule)
        return index

    def _row_of(self, rule: str) -> int | None:
        return next((n for n, row in enumerate(self.rows) if row.finding.id == rule and not row.consequences), None)

    def _cause_of(self, rule: str) -> str:
        """Return the cause below which a finding of ``rule`` is hidden; "" if there is none."""
        return next((row.finding.id for row in self.rows if rule in {finding.id for finding in row.consequences}), "")

    def row_at(self, offset: int) -> int | None:
        """Return the row of the first finding at an offset of the log."""
        return next((n for n, row in enumerate(self.rows) if log_offset(row.finding) == offset), None)

    def same_row(self, chosen: FindingRow | None) -> int:
        """Return the row of the finding that ``chosen`` showed before the rows were replaced; 0 if it has none."""
        if chosen is None:
            return 0
        return next(
            (
                n
                for n, row in enumerate(self.rows)
                if row.finding == chosen.finding and bool(row.consequences) == bool(chosen.consequences)
            ),
            0,
        )

    # ---- the check ---------------------------------------------------------------------------------------------------

    def begin_check(self) -> None:
        """Note that the check runs."""
        self.running, self.error = True, ""

    def end_check(self, checked_bytes: int | None, error: str = "") -> None:
        """Note that the check has ended. ``checked_bytes`` is None if it has no result."""
        self.running, self.error = False, error
        if checked_bytes is not None:
            self.checked_bytes, self.stale = checked_bytes, False

    def grow(self) -> None:
        """Note that the store has grown."""
        if self.store is not None and self.store.complete and self.checked_bytes:
            self.stale = True

    def status(self) -> str:
        """Return how much was checked and what was found, for the status bar."""
        store = self.store
        if store is None:
            return ""
        if self.running:
            return tr("The check is running.")
        if store.has_unread:
            return tr("Checked what can be read")
        if not store.complete and not store.findings:
            return tr("This store has not been checked.")
        edge = tr("complete") if store.complete else tr("stopped before the end")
        count = len(store.findings)
        count_text = tr_plural("{n:,} finding", "{n:,} findings", n=count)
        return " · ".join((tr("Checked {size}", size=size(self.checked_bytes)), count_text, edge))

    def head_note(self) -> str:
        """Return the text beside the table's title: the extent of the check."""
        if self.store is None or not self.store.complete:
            return ""
        return tr("all rules, whole store") if self.store.is_whole else tr("this log only")

    def empty_detail(self) -> str:
        """Return the text of the empty detail pane after a check without findings."""
        store = self.store
        if store is not None and store.complete and not store.findings:
            return tr("No finding: everything here is as a broker leaves it.")
        return ""

    def table_state(self, progress: Progress | None = None) -> TableState | None:
        """Return the message of the table: loading, error, incomplete, empty. None if its rows need no message."""
        store = self.store
        if store is None:
            return None
        if self.running:
            return _running_state(progress)
        if self.error:
            return TableState("error", self.error, CHECK_AGAIN)
        if store.has_unread:
            text = (
                tr("Incomplete: unread files were not checked.")
                if store.has_unreadable
                else tr("What is not decoded was not checked.")
            )
            return TableState("cut", text, CHECK_AGAIN)
        if not store.complete and not store.findings:
            text = tr("This store has not been checked: {size} of log.", size=size(store.log_bytes))
            return TableState("empty", text, CHECK_NOW)
        if not store.complete:
            return TableState("cut", tr("The check was stopped: these are the findings up to there."), CHECK_AGAIN)
        if self.stale:
            return TableState("stale", tr("The store has grown since it was checked."), CHECK_AGAIN)
        if not store.findings:
            if not store.is_whole:
                return TableState("empty", tr("No problems found in this log. Most rules need a complete store."))
            return TableState("empty", tr("No problems found: every rule checked the whole store."))
        if not self.rows:
            return TableState("empty", tr("All findings are hidden by their severity."))
        return None


def _running_state(progress: Progress | None) -> TableState:
    if progress is None or not progress.total:
        return TableState("loading", tr("The check begins"))
    text = tr("{done} of {total}", done=size(progress.done), total=size(progress.total))
    if progress.seconds > 1 and progress.done:
        seconds_left = (progress.total - progress.done) / progress.done * progress.seconds
        rate = size(progress.done / progress.seconds)
        text += f" · {rate}/s · " + tr("{time} left", time=span(round(seconds_left * 1000)))
    return TableState("loading", text, STOP, min(1.0, progress.done / progress.total))
