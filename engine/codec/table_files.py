"""Files of the tables under ``config/``, and which of them a broker loads (docs/formats/config-tables.md#rules).

A missing, empty or unparsable main file → the ``.bak``. If that is missing or empty → the broker starts with defaults.
If it cannot be parsed → the broker does not start. Pure: the bytes come from a function of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from engine.codec.json_dialect import Parsed, parse
from engine.codec.table_types import find_misfit
from engine.releases import NEWEST, Release, of
from engine.sentences import sentence

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

OPTIONAL_TABLES = ("messageRequestMode.json", "transactionMetrics")
"""Tables that may fail to load without stopping the broker."""

Used = Literal["main", "bak", "defaults", "nothing"]
State = Literal["ok", "missing", "empty", "bad", "unreadable"]


@dataclass(frozen=True, slots=True)
class TableFile:
    """Either of the two files of a table. ``complaint`` is why a broker would reject it, None if it would accept it."""

    name: str
    state: State
    complaint: str | None
    parsed: Parsed | None  # None if there was no text


@dataclass(frozen=True, slots=True)
class Table:
    """The content that a broker would have after loading ``name``; ``value`` is {} for defaults and if it would not
    start.
    """

    name: str
    used: Used  # ``nothing``: both files are bad, the broker does not start
    why: str
    value: dict[str | int, Any]
    main: TableFile
    bak: TableFile | None  # None: not read, because the main file is good

    @property
    def will_load(self) -> bool:
        """True if a broker starts with this table."""
        return self.used != "nothing"

    @property
    def file(self) -> str | None:
        """The name of the file that was used."""
        return {"main": self.name, "bak": self.name + BACKUP}.get(self.used)


def load_table(name: str, read: Callable[[str], bytes | None], release: Release = NEWEST) -> Table:
    """Load the table ``name`` as a broker of ``release`` does.

    ``read`` returns the bytes of a file by name, None if there is no such file. An ``OSError`` of ``read`` counts
    as an unreadable file and is reported in ``complaint``.

    """
    main = read_table_file(name, read, release)
    if main.state == "ok":
        return Table(name, "main", sentence("{file} is sound", file=name), _value(main), main, None)
    bak = read_table_file(name + BACKUP, read, release)
    if bak.state == "ok":
        return Table(
            name,
            "bak",
            sentence("{reason}, so {file} counts", reason=_reason(main), file=bak.name),
            _value(bak),
            main,
            bak,
        )
    if bak.state in {"missing", "empty"}:
        reason = sentence("{one} and {other}: a broker starts with defaults", one=_reason(main), other=_reason(bak))
        return Table(name, "defaults", reason, {}, main, bak)
    if name in OPTIONAL_TABLES:
        reason = sentence("{one} and {other}: a broker starts with defaults", one=_reason(main), other=_reason(bak))
        return Table(name, "defaults", reason, {}, main, bak)
    reason = sentence("{one} and {other}: a broker does not start", one=_reason(main), other=_reason(bak))
    return Table(name, "nothing", reason, {}, main, bak)


def read_table_file(name: str, read: Callable[[str], bytes | None], release: Release = NEWEST) -> TableFile:
    """Read the file ``name`` alone, whichever file a broker would take; arguments as for :func:`load_table`."""
    try:
        raw = read(name)
    except OSError as error:
        return TableFile(name, "unreadable", error.strerror or str(error), None)
    if raw is None:
        return TableFile(name, "missing", "no such file", None)
    if not raw:
        return TableFile(name, "empty", "0 bytes", None)
    parsed = parse(raw)
    complaint = parsed.complaint_of(of(release).json_parser)
    if complaint is None:
        complaint = find_misfit(name.removesuffix(BACKUP), parsed.value, release)
    return TableFile(name, "bad" if complaint else "ok", complaint, parsed)


def _value(file: TableFile) -> dict[str | int, Any]:
    value = file.parsed.value if file.parsed else None
    return value if isinstance(value, dict) else {}


def _reason(file: TableFile) -> str:
    match file.state:
        case "missing":
            return sentence("{file} is missing", file=file.name)
        case "empty":
            return sentence("{file} is empty", file=file.name)
        case _:
            return sentence("{file} cannot be read ({why})", file=file.name, why=file.complaint)
