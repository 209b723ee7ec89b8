"""A table under ``config/`` as RocketMQ loads it: the file, else its ``.bak`` (spec 14.1).

Missing, empty or unparsable main file → the ``.bak``; that missing or empty → the broker starts with defaults; a
``.bak`` that cannot be parsed → the broker does not start. Pure: the bytes come from a function of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from engine.codec.json_dialect import Parsed, parse

BACKUP = ".bak"
TABLES = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "lmqConsumerOffset.json",
    "delayOffset.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "topicQueueMapping.json",
    "messageRequestMode.json",
    "timermetrics",
    "transactionMetrics",
)
"""The JSON tables of a broker; ``timercheck`` beside them is binary."""

NOT_ASKED = ("messageRequestMode.json", "transactionMetrics")
"""Tables of which a broker does not ask whether they could be loaded."""

Used = Literal["main", "bak", "defaults", "nothing"]
State = Literal["ok", "missing", "empty", "bad", "unreadable"]


@dataclass(frozen=True, slots=True)
class TableFile:
    """One of the two files of a table. ``complaint`` says why a broker would not take it; None where it would."""

    name: str
    state: State
    complaint: str | None
    parsed: Parsed | None  # None where there was no text


@dataclass(frozen=True, slots=True)
class Table:
    """What a broker would have after loading ``name``; ``value`` is {} for defaults and where it would not start."""

    name: str
    used: Used  # ``nothing``: both files are bad, the broker does not start
    why: str
    value: dict[str | int, Any]
    main: TableFile
    bak: TableFile | None  # None: not looked at, because the main file was good

    @property
    def will_load(self) -> bool:
        """A broker starts with this table."""
        return self.used != "nothing"

    @property
    def file(self) -> str | None:
        """Name of the file that was used."""
        return {"main": self.name, "bak": self.name + BACKUP}.get(self.used)


def load_table(name: str, read: Callable[[str], bytes | None]) -> Table:
    """The table ``name``; ``read`` gives the bytes of a file by name, None where there is no such file.

    An ``OSError`` of ``read`` counts as a file that cannot be read and is told in ``complaint``.
    """
    main = look_at(name, read)
    if main.state == "ok":
        return Table(name, "main", f"{name} is sound", _value(main), main, None)
    bak = look_at(name + BACKUP, read)
    if bak.state == "ok":
        return Table(name, "bak", f"{_reason(main)}, so {bak.name} counts", _value(bak), main, bak)
    if bak.state in {"missing", "empty"}:
        why = f"{_reason(main)} and {_reason(bak)}: a broker starts with defaults"
        return Table(name, "defaults", why, {}, main, bak)
    if name in NOT_ASKED:
        why = f"{_reason(main)} and {_reason(bak)}: a broker starts with defaults"
        return Table(name, "defaults", why, {}, main, bak)
    why = f"{_reason(main)} and {_reason(bak)}: a broker does not start"
    return Table(name, "nothing", why, {}, main, bak)


def look_at(name: str, read: Callable[[str], bytes | None]) -> TableFile:
    """The file ``name`` by itself, whatever a broker would take; ``read`` as for :func:`load_table`."""
    try:
        raw = read(name)
    except OSError as error:
        return TableFile(name, "unreadable", error.strerror or str(error), None)
    if raw is None:
        return TableFile(name, "missing", "no such file", None)
    if not raw:
        return TableFile(name, "empty", "0 bytes", None)
    parsed = parse(raw)
    complaint = parsed.complaint
    if complaint is None and parsed.value is not None and not isinstance(parsed.value, dict):
        complaint = f"expected an object, found {type(parsed.value).__name__}"
    return TableFile(name, "bad" if complaint else "ok", complaint, parsed)


def _value(file: TableFile) -> dict[str | int, Any]:
    value = file.parsed.value if file.parsed else None
    return value if isinstance(value, dict) else {}


def _reason(file: TableFile) -> str:
    match file.state:
        case "missing":
            return f"{file.name} is missing"
        case "empty":
            return f"{file.name} is empty"
        case _:
            return f"{file.name} cannot be read ({file.complaint})"
