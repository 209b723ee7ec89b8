"""The state of the view of two stores: what was compared, where the logs differ, and in which words. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.inspection.difference_rows import Control, Differences, Row
from viewer.compare.differences_model import verdict_words
from viewer.compare.pair_rows import NO_END, SIGNS, AlignedTail, DifferenceSpan, DifferenceSpans, joined_spans
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words

if TYPE_CHECKING:
    from engine.inspection.message_alignment import AlignedMessages
    from engine.inspection.snapshot import StoreSnapshot

MAX_SPANS = 100_000
_SIGN_OF_SIDE = {"here": "own", "there": "other", "differs": "differs"}


@dataclass
class ComparedStores:
    """The result of comparing two stores."""

    differences: Differences
    tail: AlignedTail | None
    spans: DifferenceSpans
    is_too_long: bool = False
    """True if the logs have too many messages of other offsets to be put side by side by message."""
    ends: tuple[int, int] = (0, 0)
    """Ends of both logs when they were compared."""
    drawn: tuple[DifferenceSpan, ...] = ()
    """The spans as they are drawn: neighbours are joined."""
    heads: tuple[DifferenceSpan, ...] = ()
    """What one log has before the beginning of the other one. That is no difference to go to."""


def compare_stores(control: Control, store: StoreSnapshot, other_store: StoreSnapshot) -> ComparedStores:
    """Compare two stores, and put their messages side by side where their offsets do not agree.

    Raises StoreError, OSError, and what ``control.check`` raises.
    """
    from engine.inspection.store_differences import align_from, compare  # numpy: not before the first rows

    ends = (store.log.max_offset, other_store.log.max_offset)
    differences = compare(control, store, other_store, Differences())
    fork = next((start for start, stop in differences.apart if stop >= NO_END), None)
    messages = align_from(control, store, other_store, fork) if fork is not None else None
    tail = tail_from(fork, messages, max(ends)) if fork is not None and messages is not None else None
    stop = tail.start if tail is not None else NO_END
    spans = [*spans_of_rows([row for row in differences.rows if row.end != "head"], stop)]
    heads = tuple(spans_of_rows([row for row in differences.rows if row.end == "head"], stop))
    if tail is not None:
        spans += spans_of_messages(tail)
    is_cut = differences.is_truncated or len(spans) > MAX_SPANS
    is_too_long = fork is not None and tail is None
    ordered = DifferenceSpans(spans[:MAX_SPANS], is_cut=is_cut)
    low = min(max(store.log.min_offset, 0), max(other_store.log.min_offset, 0))
    drawn = tuple(joined_spans(ordered.spans, low, max(*ends, tail.end if tail is not None else 0)))
    return ComparedStores(differences, tail, ordered, is_too_long, ends, drawn, heads)


def tail_from(fork: int, messages: AlignedMessages, end: int) -> AlignedTail:
    """Return messages behind a fork; their rows take about as much of the scroll bar as their bytes."""
    return AlignedTail(fork, messages, max(1, (end - fork) // max(1, len(messages))))


def spans_of_rows(rows: list[Row], stop: int) -> Iterator[DifferenceSpan]:
    """Yield the differences of units before ``stop``, where both logs have the same offsets."""
    for row in rows:
        if row.kind != "unit" or row.offset is None or row.offset >= stop:
            continue
        yield DifferenceSpan(row.offset, row.offset + max(1, row.size or 1), _SIGN_OF_SIDE[row.side])
        if row.offset_there is not None and row.offset_there != row.offset:
            yield DifferenceSpan(row.offset_there, row.offset_there + max(1, row.size or 1), "differs")


def spans_of_messages(tail: AlignedTail) -> list[DifferenceSpan]:
    """Return the runs of rows with the same sign that is not "same"; one more than are shown, if there are more."""
    kinds = tail.messages.kinds
    if not len(kinds):
        return []
    starts = [0, *((kinds[1:] != kinds[:-1]).nonzero()[0] + 1).tolist()]
    spans: list[DifferenceSpan] = []
    for start, stop in zip(starts, [*starts[1:], len(kinds)], strict=True):
        sign = SIGNS[int(kinds[start])]
        if sign != "same":
            spans.append(DifferenceSpan(tail.start + start * tail.step, tail.start + stop * tail.step, sign))
            if len(spans) > MAX_SPANS:
                break
    return spans


@dataclass
class PairModel:
    """Two stores as the view shows them."""

    path: str = ""
    """Path of the other store; empty while none is chosen."""
    error: str = ""
    """Why the other store cannot be shown, or why comparing ended early."""
    is_stopped: bool = False
    is_running: bool = False
    comparison: ComparedStores | None = None
    spans: DifferenceSpans = field(default_factory=DifferenceSpans)

    def choose(self, path: str) -> None:
        """Compare with another store."""
        self.path, self.error, self.is_stopped = path, "", False
        self.comparison, self.spans = None, DifferenceSpans()

    def begin(self) -> bool:
        """Begin to compare. Return False if that runs already."""
        if self.is_running:
            return False
        self.is_running, self.error, self.is_stopped = True, "", False
        return True

    def end(self, comparison: ComparedStores | None, *, error: str = "") -> None:
        """Take the result; None if comparing was stopped or failed."""
        self.is_running, self.comparison, self.error = False, comparison, error
        self.is_stopped = comparison is None and not error
        self.spans = comparison.spans if comparison is not None else DifferenceSpans()

    def fail(self, error: str) -> None:
        """The other store cannot be opened."""
        self.is_running, self.error = False, error

    def counts(self) -> dict[str, int]:
        """Numbers of messages that differ, by side; empty before the stores were compared."""
        if self.comparison is None:
            return {}
        counts = self.comparison.differences.counts
        by_side = {
            "differs": counts.get(("unit", "differs"), 0),
            "own": counts.get(("unit", "here"), 0),
            "other": counts.get(("unit", "there"), 0),
        }
        return {side: count for side, count in by_side.items() if count}

    def place_words(self, position: int | None) -> str:
        """Say which difference of how many is in front."""
        count = len(self.spans)
        if self.comparison is None or not count:
            return ""
        shown_count = f"{count:,}+" if self.spans.is_cut else f"{count:,}"
        number = self.spans.number_at(position) if position is not None else None
        if number is None:
            return tr_plural(
                "{count} difference in the log", "{count} differences in the log", n=count, count=shown_count
            )
        return tr("Difference {n:,} of {count}", n=number + 1, count=shown_count)

    def sentence(self, *, is_complete: bool) -> str:
        """Say how the stores compare. ``is_complete`` is False where a part of a store could not be read."""
        if self.is_running:
            return tr("Comparing two stores…")
        if self.error:
            return engine_words(self.error)
        if self.is_stopped:
            return tr("Comparing was stopped: not all differences are known.")
        if self.comparison is None:
            return ""
        text = verdict_words(self.comparison.differences, is_complete=is_complete)
        if self.comparison.is_too_long:
            text += " " + tr("There are too many messages to put them level: rows are in the order of their offsets.")
        return text
