"""Columns and places of rows that stand for messages: their unit in the log and their entry in a queue. No Qt.

A row has ``topic``, ``queue_id`` and ``queue_offset``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewer.look.assets import tr, words
from viewer.runtime import places
from viewer.widgets.columns import Chip, Column, number_column, topic_column


def translated_chip(chips: dict[str, Chip], attribute: str) -> Callable[[Any], Chip]:
    """Return a function from a row to the translated chip of its ``attribute``."""

    def chip_of(row: Any) -> Chip:
        chip = chips[getattr(row, attribute)]
        return Chip(chip.kind, tr(chip.word))

    return chip_of


def entry_place(row: Any) -> object | None:
    """Return the place of the row's queue entry; None if the row has none."""
    if row.topic is None or row.queue_id is None or row.queue_offset is None:
        return None
    return places.queue(row.topic, row.queue_id, row.queue_offset)


def queue_columns(topic_title: str = words("Topic"), *, has_offset: bool = True) -> list[Column]:
    """Return the columns topic, queue and queue offset; the offset leads to the entry."""
    columns = [topic_column("topic", topic_title, 170), number_column("queueId", words("Queue"), 64)]
    if has_offset:
        columns.append(number_column("queueOffset", words("Queue offset"), 100, jump=entry_place))
    return columns
