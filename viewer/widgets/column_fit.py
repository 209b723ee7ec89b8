"""How wide the columns of a table are: from their heads and the rows in sight, and which give way where room is short.

No Qt: widths come in as px. Bodies give way first, then sentences, then names that are long, then heads that are
longer than what stands below them, then all names down to where two of them could not be told apart; numbers, offsets,
times and states never do: then the table scrolls sideways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from viewer.widgets.columns import Column

FOLDED = 24
"""Px at 100 % of a column that has no value in sight."""
IN_SIGHT = 200
"""Rows that are measured as a source comes; later ones as they come on the screen."""
BODY, SENTENCE, NAME, WHOLE = range(4)
"""What a column is; of WHOLE ones only the heads give way."""
LONG_NAME = 220
"""Px at 100 % down to which a name gives way before it is looked up how far it can and still be told apart."""
LEAST = {BODY: 72, SENTENCE: 88, NAME: 64, WHOLE: 68}
"""Px at 100 % below which no column of a rank goes, unless its values are shorter; short heads stay whole."""


def rank_of(column: Column) -> int:
    """When the column gives way."""
    if not column.key or column.right or column.elide == "never" or column.paint in {"chip", "letters"}:
        return WHOLE
    if column.slim:
        return BODY
    return NAME if column.elide == "middle" else SENTENCE


def column_id(column: Column) -> str:
    """What names a column of a table between starts; "" for the gutter."""
    return column.key or column.title


@dataclass(frozen=True, slots=True)
class Need:
    """What a column wants: ``full`` px for its head and all values in sight; it gives way down to ``least`` px, a name
    down to ``easy`` px before heads do.
    """

    full: int
    least: int
    rank: int
    easy: int = 0


def fitted(needs: Sequence[Need], room: int) -> list[int]:
    """The widths in the order of ``needs``; they are more than ``room`` together where nobody can give way any more."""
    widths = [need.full for need in needs]
    long_names = [replace(need, least=max(need.least, need.easy)) for need in needs]
    for rank, floors in ((BODY, needs), (SENTENCE, needs), (NAME, long_names), (WHOLE, needs), (NAME, needs)):
        missing = sum(widths) - room
        if missing <= 0:
            break
        _lower(widths, [n for n, need in enumerate(needs) if need.rank == rank], floors, missing)
    return widths


def _lower(widths: list[int], those: list[int], needs: Sequence[Need], missing: int) -> None:
    """Take ``missing`` px from ``those``, from the widest first: a short column stays whole beside a long one."""
    target = sum(widths[n] for n in those) - missing

    def at(level: int) -> list[int]:
        return [max(min(needs[n].least, widths[n]), min(widths[n], level)) for n in those]

    low, high = 0, max((widths[n] for n in those), default=0)
    while low < high:
        level = (low + high + 1) // 2
        low, high = (level, high) if sum(at(level)) <= target else (low, level - 1)
    for n, width in zip(those, at(low), strict=True):
        widths[n] = width


def apart(names: Iterable[str], full: int, least: int, shorten: Callable[[str, int], str], step: int = 8) -> int:
    """The smallest width from ``least`` on at which no two different ``names`` look alike once ``shorten`` (text, px)
    has cut them; ``full`` where every smaller one makes some equal.
    """
    different = set(names)
    for width in range(least, full, step):
        if len({shorten(name, width) for name in different}) == len(different):
            return width
    return full


@dataclass
class KeptColumns:
    """What a person did to the columns of one table: dragged widths in px at 100 %, the order, fields added."""

    widths: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """For the settings; empty where nothing was done."""
        parts = {"widths": self.widths, "order": self.order, "added": self.added}
        return {name: part for name, part in parts.items() if part}


def kept_columns(value: object) -> KeptColumns:
    """The reverse of :meth:`KeptColumns.record`; what is no such thing counts as nothing done."""
    found = value if isinstance(value, dict) else {}
    widths, order, added = (found.get(name) for name in ("widths", "order", "added"))
    return KeptColumns(
        {k: v for k, v in widths.items() if isinstance(v, int) and 16 <= v <= 4000} if isinstance(widths, dict) else {},
        [one for one in order if isinstance(one, str)] if isinstance(order, list) else [],
        [one for one in added if isinstance(one, str)] if isinstance(added, list) else [],
    )
