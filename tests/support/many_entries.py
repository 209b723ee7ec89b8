"""A hundred million entries that are made when they are read, and their columns."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.widgets.columns import Chip, RecordKind, RowAppearance, chip_column, gutter, number_column, text_column
from viewer.widgets.row_window import Page

MANY = 100_000_000


FAR = 1 << 42


@dataclass(frozen=True)
class Entry:
    queue_offset: int
    physical_offset: int
    verdict: str = "ok"


class Entries:
    """A hundred million entries that are made when they are read, the first one numbered ``FAR``."""

    start, end, total = FAR, FAR + MANY, MANY

    def __init__(self):
        self.reads = 0

    def read(self, position, before, after):
        self.reads += 1
        first, last = max(self.start, position - before), min(self.end, position + after)
        rows = [Entry(n, n * 300, "missing" if n % 7 == 0 else "ok") for n in range(first, last)]
        return Page(rows, position - first, first == self.start, last == self.end)

    def position(self, row):
        return row.queue_offset

    def behind(self, row):
        return row.queue_offset + 1

    def number(self, row):
        return row.queue_offset - self.start

    def position_of(self, number):
        return self.start + number


KIND = RecordKind(
    "cq",
    (
        gutter(),
        number_column("queueOffset", "Queue offset", 140),
        number_column("physicalOffset", "Physical offset", 140, jump=lambda row: ("log", row.physical_offset)),
        chip_column(
            "verdict", "Verdict", 90, lambda row: Chip("ok") if row.verdict == "ok" else Chip("error", "missing")
        ),
        text_column("topic", "Topic", 100),
    ),
    look=lambda row: RowAppearance("error") if row.verdict != "ok" else None,
    verdict=lambda row: row.verdict,
    command=lambda row: ["storescope", "queue", "a b", str(row.queue_offset)],
)
