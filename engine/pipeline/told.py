"""What a read tells of its plan, in the words that ``explain()`` shows beside the scan.

Python plans in a process of its own, and the plan's tree is Java's: the words travel in the first partition, where the
rule of :mod:`engine.pipeline.insides.one_read_each` finds them between two marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.pipeline.filters import Condition
from engine.pipeline.splits import Skipped

_MARKS = "<told>", "</told>"
_LONGEST = 300
"""Characters of one list: ``IN`` may have a million values."""


def words(
    columns: Iterable[str], conditions: Iterable[Condition], parts: Sequence[Any], skipped: Iterable[Skipped], crc: bool
) -> str:
    """Which columns are decoded, by what is chosen, and how many bytes are read and passed over, and why."""
    left_out = list(skipped)
    passed = f"passed over: {sum(one.bytes for one in left_out):,} bytes"
    if left_out:
        passed += f" ({_short('; '.join(dict.fromkeys(one.why for one in left_out)))})"
    asked = ", ".join(_condition(one) for one in conditions)
    told = (
        f"columns: [{', '.join(columns)}]{', CRC of each body' if crc else ''}, conditions: [{_short(asked)}], "
        f"to read: {sum(max(part.stop - part.start, 0) for part in parts):,} bytes, {passed}"
    )
    for mark in _MARKS:
        told = told.replace(mark, "")
    return told.join(_MARKS)


def _condition(one: Condition) -> str:
    return f"{one.column} {one.operator} {', '.join(map(str, one.values[:10]))}".rstrip()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
