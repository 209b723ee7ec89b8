"""Patches that change rows of a JSON table below ``config/``; everything else of the table stays as it was read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from engine.codec.config_tables import Table, topics_by_group
from engine.codec.json_dialect import render
from engine.patching.patches import WriteFile

Row = dict[str | int, Any]


def set_number(
    table: Table, old: bytes | None, row: tuple[str, ...], key: int | None, number: int, now: int, why: str
) -> WriteFile:
    """Return the patch that sets a number of ``table``, whose file holds ``old`` (None: there is none).

    ``row`` are the names of the objects around it, ``key`` the number's own key (a queue id or a delay level); without
    ``key`` the last name of ``row`` is the number itself. What is missing is created. ``now`` is as in
    :func:`edit_table`.
    """
    names, last_name = (row[:-1], row[-1]) if key is None else (row, key)

    def set_it(value: Row) -> None:
        put(value, names, last_name, number)

    return edit_table(table, old, set_it, why, now)


def put(value: Row, names: tuple[str, ...], key: str | int, content: Any) -> None:
    """Set ``key`` of the object that ``names`` lead to; objects that are missing are created."""
    members = value
    for name in names:
        inner = members.get(name)
        if not isinstance(inner, dict):
            inner = members[name] = {}
        members = inner
    members.pop(str(key), None)  # a table may have the key as a number or as a text
    members[key] = content


def edit_table(
    table: Table, old: bytes | None, change: Callable[[Row], None], why: str, now: int | None = None
) -> WriteFile:
    """Return the patch that makes ``change`` in a copy of the table's content. What follows from the rows
    (``groupTopicMap``) follows; a ``dataVersion`` is counted up, its time becomes ``now`` (ms; None leaves it).
    """
    value: Row = copy.deepcopy(table.value)
    change(value)
    topics = value.get("groupTopicMap")
    if isinstance(topics, dict) and isinstance(value.get("offsetTable"), dict):
        for group, group_topics in topics_by_group(value["offsetTable"]).items():
            listed = topics.setdefault(group, [])
            listed += [name for name in group_topics if name not in listed]
    version = value.get("dataVersion")
    if isinstance(version, dict):
        counter = version.get("counter")
        version["counter"] = (counter if isinstance(counter, int) else 0) + 1
        if now is not None:
            version["timestamp"] = now
    return WriteFile(file=f"config/{table.name}", old=old, new=render(value).encode(), why=why)
