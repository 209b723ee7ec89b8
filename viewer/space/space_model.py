"""The state of the Space view: the account of the bytes, how it is grouped, the forecast, the running count. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, size
from viewer.runtime.places import Place
from viewer.space.areas import REST_PREFIX, Grouping, Measure, area_of
from viewer.space.facts import area_facts, queue_counts, status_words
from viewer.space.rows import SpaceRow, space_rows
from viewer.widgets.areas import Area, find
from viewer.widgets.facts import Fact
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.inspection.space.account import Space
    from viewer.space.work import Forecast

QUICK_ACCOUNT_MS, QUICK_ACCOUNT_BYTES = 1500, 256 << 20
"""An account is repeated as the store grows if it took at most this time, or if the log is at most this large; else
only on request.
"""
COUNTING = words("Counting the bytes of every file …")
_EMPTY = Area("", "", 0)


@dataclass
class SpaceModel:
    """The use of a store directory's bytes, as the user chose to see it."""

    has_store: bool = False
    account: Space | None = None
    rows: list[SpaceRow] = field(default_factory=list)
    root: Area = _EMPTY
    """The directory under the chosen grouping and measure."""
    grouping: Grouping = "topic"
    measure: Measure = "allocated"
    forecast: Forecast | None = None
    pending_topic: str = ""
    """A topic that is chosen as soon as the bytes are counted."""
    running: bool = False
    error: str = ""
    """Why the last count failed."""
    forecast_error: str = ""
    is_cut: bool = False
    """True if the last count was stopped before the end."""
    is_stale: bool = False
    """True if the store has grown since a count that takes too long to be repeated without a request."""
    _begun: bool = False
    _max_topic_bytes: int = 1

    def open(self, *, has_store: bool) -> None:
        """Show another store, or none. Grouping, measure and the pending topic stay."""
        self.has_store = has_store
        self.account, self.rows, self.root, self.forecast = None, [], _EMPTY, None
        self.running = self.is_cut = self.is_stale = self._begun = False
        self.error = self.forecast_error = ""

    # ---- counting ----------------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Return True once for each store: then the first count begins."""
        if not self.has_store or self._begun:
            return False
        self._begun = True
        return True

    def begin_count(self) -> bool:
        """Begin a count. Return False if one runs already."""
        if not self.has_store or self.running:
            return False
        self.running = True
        return True

    def take_account(self, account: Space) -> None:
        """Take an account, also one of a count that still runs."""
        self.account, self.error = account, ""
        self.rows = space_rows(account)
        self._max_topic_bytes = max((row.log for row in self.rows if row.kind == "topic"), default=1) or 1
        self._group()

    def end_count(self, account: Space | None) -> None:
        """Note that the count has ended; ``account`` is None if it was stopped without a result."""
        self.running = self.is_stale = False
        if account is not None:
            self.take_account(account)
        self.is_cut = account is None or account.method == "cut"

    def fail(self, error: str) -> None:
        """Note that the count has failed."""
        self.running, self.error = False, error

    @property
    def is_quick(self) -> bool:
        """True if counting is quick enough to be repeated without a request."""
        if self.account is None:
            return False
        log_allocated = sum(kind.allocated for kind in self.account.kinds if kind.kind == "commitlog")
        return self.account.took_ms <= QUICK_ACCOUNT_MS or log_allocated <= QUICK_ACCOUNT_BYTES

    def grow(self) -> bool:
        """Note that the store has grown. Return True if the view should look again soon."""
        if self.account is None or self.running or not self.has_store:
            return False
        self.is_stale = not self.is_quick
        return True

    def is_busy(self) -> bool:
        """Return True while the first result is awaited."""
        return self.running and self.account is None

    # ---- the forecast ------------------------------------------------------------------------------------------------

    def take_forecast(self, forecast: Forecast, *, is_partial: bool = False) -> bool:
        """Take a forecast. Return False for a partial one if there is one already."""
        if is_partial and self.forecast is not None:
            return False
        self.forecast, self.forecast_error = forecast, ""
        return True

    def fail_forecast(self, error: str) -> None:
        """Note that the forecast failed. An earlier one stays."""
        if self.forecast is None:
            self.forecast_error = error

    # ---- areas and rows ----------------------------------------------------------------------------------------------

    def group_by(self, grouping: Grouping, measure: Measure) -> None:
        """Draw the areas under another grouping, or by another measure."""
        self.grouping, self.measure = grouping, measure
        self._group()

    def _group(self) -> None:
        if self.account is not None:
            self.root = area_of(self.account, self.grouping, self.measure)

    def area(self, path: tuple[str, ...]) -> Area | None:
        """Return the area at ``path``. None for the whole directory, and where there is none."""
        return find(self.root, path) if path else None

    def index_of(self, key: str) -> int | None:
        """Return the row of a topic or another area."""
        return next((number for number, row in enumerate(self.rows) if row.key == key), None)

    def take_pending_topic(self) -> str:
        """Return the topic that waits for the account, once."""
        topic, self.pending_topic = self.pending_topic, ""
        return topic

    def key_of_area(self, path: tuple[str, ...]) -> str | None:
        """Return the key of the row that an area belongs to. None without an area."""
        area = self.area(path)
        return None if area is None else area.topic or path[0]

    def path_of_row(self, row: SpaceRow | None) -> tuple[str, ...] | None:
        """Return the path of the area that is chosen with a row: () for the sum, None if the row has no area."""
        if row is None:
            return None
        if row.kind == "sum":
            return ()
        if self.grouping not in {"topic", "tag"} or self.area((row.key,)) is None:
            return None
        return (row.key,)

    def share_of_largest_topic(self, row: SpaceRow) -> float | None:
        """Return the bytes of a topic in the log as a share of the largest topic's. None for other rows."""
        if row.kind != "topic":
            return None
        return row.log / self._max_topic_bytes

    def topics_by_size(self) -> list[str]:
        """Return the keys of the topics, most bytes in the log first."""
        return [row.key for row in sorted(self.rows, key=lambda row: -row.log) if row.kind == "topic"]

    # ---- what the view says ------------------------------------------------------------------------------------------

    def facts(self, path: tuple[str, ...]) -> list[Fact]:
        """Return the facts of an area, or of the whole directory."""
        return area_facts(self.account, path, self.area(path)) if self.account is not None else []

    def queue_bars(self, path: tuple[str, ...]) -> tuple[str, list[tuple[str, int]]]:
        """Return the topic of an area and the units of each of its queues."""
        area = self.area(path)
        topic = area.topic if area is not None else ""
        return topic, queue_counts(self.account, topic) if self.account is not None and topic else []

    def table_state(self) -> TableState | None:
        """Return the message of the table: loading, error, empty. None if its rows need no message."""
        if self.error:
            return TableState("error", self.error)
        return TableState("loading", tr(COUNTING)) if self._awaits_account else None

    @property
    def _awaits_account(self) -> bool:
        return self.has_store and self.account is None and (self.running or not self.is_cut)

    def count_state(self) -> TableState | None:
        """Return how far the count can be trusted, with the step that counts again. None if it is complete."""
        if self.is_stale and self.account is not None:
            text = tr("As of {time}; the store has grown since.", time=clock(self.account.at)[:8])
            return TableState("stale", text, tr("Refresh"))
        if self.is_cut:
            return TableState("cut", tr("Stopped. The rest of the log was not looked at."), tr("Go on"))
        return None

    def map_words(self) -> str:
        """Return what stands in place of the areas if there are none."""
        if self.error:
            return self.error
        if self.account is not None:
            return tr("The directory holds no bytes.")
        return tr(COUNTING) if self._awaits_account else ""

    def table_note(self) -> str:
        """Return what was counted, for the head of the table."""
        account = self.account
        if account is None:
            return ""
        counted = tr_plural(
            "{size} in {n:,} file, {allocated} allocated",
            "{size} in {n:,} files, {allocated} allocated",
            size=size(account.bytes),
            n=account.file_count,
            allocated=size(account.allocated),
        )
        return counted + " · " + tr("most bytes first, queue files too")

    def days_words(self) -> str:
        """Return what stands in place of the days if there are none."""
        if self.account is not None and self.account.method in {"queues", "sampled"}:
            return tr("The days are known when the log was walked.")
        if self.account is not None and not self.account.is_log_decoded:
            return tr("Not all of the log can be read: there is nothing to draw over time.")
        return tr("The log holds no message.")

    def status(self, *, is_complete: bool) -> str:
        """Return how many bytes are accounted for. ``is_complete`` is False if parts of the store are unread."""
        return status_words(self.account, is_complete=is_complete) if self.account is not None else ""


def place_of_key(key: str) -> Place:
    """Return the place of a row's key: of the whole view for what is no topic."""
    return Place("space", name="" if key.startswith(REST_PREFIX) else key)
