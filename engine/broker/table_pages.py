"""Pages of the tables of topics and groups, as brokers since 5.3.4 answer them (docs/protocol/broker.md#admin).

Java: ``TopicConfigManager.subTopicConfigTable``, ``SubscriptionGroupManager.subGroupTable``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import read_object, write
from engine.codec.json_dialect import parse
from engine.remoting.codes import WrongRequest

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header


@dataclass(frozen=True, slots=True)
class PagedTable:
    """The names of a table in requests and bodies."""

    file: str
    rows: str
    """The member of the table, and of the body, that has the rows by name."""
    begin: str
    limit: str
    total: str


def table_answer(
    broker: Broker,
    header: Header,
    table: PagedTable,
    extra_members: Mapping[str, Any] | None = None,
    extra_rows: str = "",
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the fields of an answer with a table: the whole one, as its file has it, or the page that
    the request asks for.

    A page that does not begin at 0 needs the table's current ``dataVersion``; with another one, or none, the answer is
    the first page. ``extra_members`` come before those of the file; ``extra_rows`` is the one that has rows by the same
    names. Raises :class:`WrongRequest` where RocketMQ fails.
    """
    text = broker.store.tables.text(table.file)
    if extra_members:
        text = json.dumps(extra_members)[:-1] + "," + text[1:]  # with quoted numbers as keys, which all clients read
    if not broker.store.rules.pages_tables:
        return text.encode(), {}
    value = _object(text)
    names = sorted(str(name) for name in _member(value, table.rows))
    fields = {table.total: str(len(names))}
    begin, limit, version = header[table.begin], header[table.limit], header["dataVersion"]
    if not broker.config.pages_tables or (begin is None and limit is None and version is None):
        return text.encode(), fields
    if begin is None:
        raise WrongRequest(f"a page needs the field {table.begin}")
    begin, size = int(begin), broker.config.table_page_size
    size = size if limit is None else min(size, int(limit))
    if begin != 0 and not _is_current(value, str(version or "")):
        begin = 0
    if begin < len(names) and (begin < 0 or begin + size < 1):
        raise WrongRequest(f"there is no page of {size} rows at {begin}")
    page = set(names[begin : begin + size])
    value[table.rows] = {name: row for name, row in _member(value, table.rows).items() if str(name) in page}
    for member in {"forbiddenTable", extra_rows} & value.keys():
        value[member] = {name: row for name, row in _member(value, member).items() if str(name) in page}
    return write(value), fields


def _is_current(table: Mapping[str, Any], version: str) -> bool:
    """Return True if ``version`` is the JSON of the table's ``dataVersion``."""
    if not version.strip():
        return False
    current, requested = _member(table, "dataVersion"), read_object(version.encode())
    return all(requested.get(name, 0) == current.get(name, 0) for name in ("counter", "stateVersion", "timestamp"))


def _object(text: str) -> dict[str, Any]:
    value = parse(text.encode()).value
    return dict(value) if isinstance(value, Mapping) else {}


def _member(table: Mapping[str, Any], name: str) -> Mapping[Any, Any]:
    member = table.get(name)
    return member if isinstance(member, Mapping) else {}
