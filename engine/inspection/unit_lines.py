"""The units of a log as lines of JSON, whole blocks at a time: what ``json.dumps`` makes of :func:`records.unit`.

A line is put together from the columns of a block and from the bytes behind them; no unit is decoded. Units with
something that JSON writes otherwise than it stands (quotes, control characters, malformed texts, names that stand
twice) or that are rare (IPv6 hosts, left-overs of a reused file, units that wait) are decoded and written one by one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, message, properties
from engine.codec.columns import BLANK, UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import NUMBERS
from engine.codec.unit_scan import Blank, Item, Stop
from engine.inspection import records
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.query.vector import unit_of

if TYPE_CHECKING:
    from engine.query import Filter

Rows = npt.NDArray[np.intp]

_CRC = ('"unchecked"', '"ok"', '"bad"')
"""By the codes of a block: UNCHECKED, OK, BAD."""
_HOST_AT = 48
_HOST = 8


def block_lines(
    log: LogReader,
    wanted: Filter | None,
    start: int | None,
    stop: int | None,
    *,
    crc: bool,
    body: bool,
    seen: Callable[[int], None],
) -> Iterator[Item | records.Lines | Stop]:
    """:func:`engine.inspection.matching.listed` by whole blocks."""
    topics = TopicTable()
    taken = wanted.on_blocks(topics, log.file_name, crc=crc) if wanted is not None else None
    writer = _Writer(topics, crc=crc, body=body)
    for block in scan_log(log, start, stop, crc=crc, topics=topics):
        if not isinstance(block, UnitColumns):
            if taken is None or isinstance(block, Stop):
                yield block
            continue
        seen(int(block.offset[0]))
        rows = np.flatnonzero(block["kind"] == UNIT) if taken is None else taken.rows(block)
        if len(rows):
            yield records.Lines(writer.text(block, rows, log.file_name(int(block.offset[0]))), len(rows))
        last = block.count - 1
        if taken is None and block.kind[last] == BLANK:
            yield Blank(int(block.offset[last]), int(block.size[last]))


class _Writer:
    """Makes the lines of one scan."""

    def __init__(self, topics: TopicTable, *, crc: bool, body: bool) -> None:
        self._topics = topics
        self._crc, self._body = crc, body
        self._names: list[str] = []

    def text(self, block: UnitColumns, rows: Rows, file: str | None) -> str:
        """The lines of units of one file."""
        plain = self._plain(block, rows)
        if plain.all():
            return "".join(self._lines(block, rows, file))
        made = iter(self._lines(block, rows[plain], file) if plain.any() else ())
        return "".join(
            next(made) if quick else self._line(block, row, file)
            for row, quick in zip(rows.tolist(), plain.tolist(), strict=True)
        )

    def _line(self, block: UnitColumns, row: int, file: str | None) -> str:
        record = records.unit(unit_of(block, row, self._crc), file, body=self._body)
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _plain(self, block: UnitColumns, rows: Rows) -> npt.NDArray[np.bool_]:
        """Units whose texts stand in JSON as they stand in the log."""
        kinds = block_texts.judge_pairs(block, rows)
        if kinds is None:
            return np.zeros(len(rows), np.bool_)
        topic = block.topic_id[rows]
        v6 = block.sys_flag[rows] & (message.BORN_HOST_V6 | message.STORE_HOST_V6) != 0
        plain: npt.NDArray[np.bool_] = kinds == block_texts.PLAIN
        plain &= ~v6 & (topic >= 0) & (topic != self._topics.find(message.SCHEDULE_TOPIC))
        plain &= block.physical_offset[rows] == block.offset[rows]
        return plain

    def _lines(self, block: UnitColumns, rows: Rows, file: str | None) -> list[str]:
        self._names += [_quoted(name) for name in self._topics.names[len(self._names) :]]
        first, last = int(rows[0]), int(rows[-1])
        low = int(block.offset[first]) - block.base
        data = block.buffer[low : int(block.offset[last]) + int(block.size[last]) - block.base].tobytes()
        held = data.decode("latin-1")  # texts of plain units are ASCII: a byte is a character
        told = {name: _numbers(getattr(block, column)[rows]) for name, column in NUMBERS.items()}
        told["type"], told["file"] = _constant('"unit"'), _constant(_quoted(file))
        told["topic"] = _of_few(self._names, block.topic_id[rows])
        told["crc"] = _of_few(_CRC, block.crc[rows])
        told["bornHost"], _ = _hosts(block, rows, _HOST_AT)
        told["storeHost"], ids = _hosts(block, rows, _HOST_AT + _HOST + 8)
        told["offsetMsgId"] = _Told(f'"{ids.form}%016X"', [*ids.values, block.physical_offset[rows].tolist()])
        texts = block_texts.Texts(block.buffer, block.properties_position[rows], block.properties_length[rows])
        told["properties"] = _Told("%s", [_pairs([held[at:end] for at, end in _spans(texts, low)])])
        for name, of in (("tags", properties.TAGS), ("uniqueKey", properties.UNIQUE_KEY), ("keys", properties.KEYS)):
            values = block_texts.property_values(block, rows, of.encode())
            told[name] = _texts([held[at:end] if at >= 0 else None for at, end in _spans(values, low)], name == "keys")
        bodies = [data[at:end] for at, end in _spans(block_texts.bodies(block, rows), low)]
        told["bodySha256"] = _Told('"%s"', [[hashlib.sha256(body).hexdigest() for body in bodies]])
        if self._body:
            told["body"] = _Told('"%s"', [[base64.b64encode(body).decode() for body in bodies]])
        names = (*records.UNIT_NAMES, *(["body"] if self._body else []))
        form = "{" + ",".join(f'"{name}":{told[name].form}' for name in names) + "}\n"
        return list(map(form.__mod__, zip(*(values for name in names for values in told[name].values), strict=True)))


@dataclass(frozen=True, slots=True)
class _Told:
    """A field of some lines: its form, and the values for each place in it. What is the same in all stands in the
    form.
    """

    form: str
    values: list[list[Any]] = field(default_factory=list)


def _quoted(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)


def _constant(text: str) -> _Told:
    return _Told(text.replace("%", "%%"))


def _numbers(column: npt.NDArray[Any]) -> _Told:
    if column.min() == column.max():
        return _constant(str(column[0]))
    return _Told("%d", [column.tolist()])


def _of_few(texts: Sequence[str], numbers: npt.NDArray[Any]) -> _Told:
    if numbers.min() == numbers.max():
        return _constant(texts[int(numbers[0])])
    return _Told("%s", [[texts[number] for number in numbers.tolist()]])


def _hosts(block: UnitColumns, rows: Rows, at: int) -> tuple[_Told, _Told]:
    """IPv4 hosts that stand ``at`` bytes behind the beginning of a unit: as JSON, and in upper-case hex."""
    raw = block_texts.fixed_width_bytes(block, block.offset[rows] - block.base + at, _HOST)
    hosts, numbers = np.unique(raw, return_inverse=True)
    whole = [host.ljust(_HOST, b"\0") for host in hosts.tolist()]
    quoted = [_quoted(message.host_text(host)) for host in whole]
    return _of_few(quoted, numbers), _of_few([host.hex().upper() for host in whole], numbers)


def _spans(texts: block_texts.Texts, low: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each text, counted from ``low``; a beginning below 0 where there is none."""
    starts = np.where(texts.starts < 0, -1, texts.starts - low)
    return zip(starts.tolist(), (starts + texts.sizes).tolist(), strict=True)


def _pairs(texts: list[str]) -> list[str]:
    """Property texts as objects of JSON, all in one go: no line end stands in any of them, and no quote."""
    whole = "\n".join(texts).replace("\x02\n", "\n").removesuffix("\x02")
    inside = whole.replace("\x01", '":"').replace("\x02", '","').replace("\n", '"}\n{"')
    return ('{"' + inside + '"}').replace('{""}', "{}").split("\n")


def _texts(texts: list[str | None], listed: bool) -> _Told:
    """Values of a property, or of a list of keys."""
    if None not in texts and not (listed and any(" " in text for text in texts if text)):
        return _Told('["%s"]' if listed else '"%s"', [texts])
    if listed:
        keys = ([f'"{key}"' for key in properties.split_keys(text)] for text in texts)
        return _Told("[%s]", [[",".join(each) for each in keys]])
    return _Told("%s", [["null" if text is None else f'"{text}"' for text in texts]])
