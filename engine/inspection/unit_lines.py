"""Writes the units of a log as lines of JSON, a block at a time: the same text as ``json.dumps`` of
:func:`records.unit`.

A line is assembled from the columns of a block and the bytes behind them; no unit is decoded. Units with text that JSON
escapes (quotes, control characters, malformed texts, duplicate names) and rare units (IPv6 hosts, left-overs of a
reused file, waiting units) are decoded and written one by one.
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
from engine.system_names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from engine.decoding.bodies import BodyDecoders
    from engine.query import Filter

Rows = npt.NDArray[np.intp]

_CRC = ('"unchecked"', '"ok"', '"bad"')
"""By the codes of a block: UNCHECKED, OK, BAD."""
_HOST_AT = 48
_HOST = 8


def block_lines(
    log: LogReader,
    unit_filter: Filter | None,
    start: int | None,
    stop: int | None,
    *,
    crc: bool,
    body: bool,
    decoders: BodyDecoders | None,
    on_progress: Callable[[int], None],
) -> Iterator[Item | records.Lines | Stop]:
    """Like :func:`engine.inspection.matching.listed`, but block by block."""
    topics = TopicTable()
    block_filter = unit_filter.on_blocks(topics, log.file_name, crc=crc) if unit_filter is not None else None
    writer = _Writer(topics, crc=crc, body=body, decoders=decoders)
    for block in scan_log(log, start, stop, crc=crc, topics=topics):
        if not isinstance(block, UnitColumns):
            if block_filter is None or isinstance(block, Stop):
                yield block
            continue
        on_progress(int(block.offset[0]))
        rows = np.flatnonzero(block["kind"] == UNIT) if block_filter is None else block_filter.rows(block)
        if len(rows):
            yield records.Lines(writer.text(block, rows, log.file_name(int(block.offset[0]))), len(rows))
        last_row = block.count - 1
        if block_filter is None and block.kind[last_row] == BLANK:
            yield Blank(int(block.offset[last_row]), int(block.size[last_row]))


class _Writer:
    """Writes the lines of one scan."""

    def __init__(self, topics: TopicTable, *, crc: bool, body: bool, decoders: BodyDecoders | None) -> None:
        self._topics = topics
        self._decoders = decoders
        self._crc, self._body = crc, body
        self._names: list[str] = []

    def text(self, block: UnitColumns, rows: Rows, file: str | None) -> str:
        """The lines of units of one file."""
        plain = self._plain(block, rows)
        if plain.all():
            return "".join(self._lines(block, rows, file))
        quick_lines = iter(self._lines(block, rows[plain], file) if plain.any() else ())
        return "".join(
            next(quick_lines) if quick else self._line(block, row, file)
            for row, quick in zip(rows.tolist(), plain.tolist(), strict=True)
        )

    def _line(self, block: UnitColumns, row: int, file: str | None) -> str:
        unit = unit_of(block, row, self._crc)
        record = records.unit(unit, file, body=self._body)
        if self._decoders is not None:
            record |= records.decoded(self._decoders.decode_unit(unit))
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _plain(self, block: UnitColumns, rows: Rows) -> npt.NDArray[np.bool_]:
        """Mark units whose texts are the same in JSON as in the log."""
        kinds = block_texts.judge_pairs(block, rows)
        if kinds is None or (self._decoders is not None and self._decoders.needs_properties):
            return np.zeros(len(rows), np.bool_)
        topic = block.topic_id[rows]
        v6 = block.sys_flag[rows] & (message.BORN_HOST_V6 | message.STORE_HOST_V6) != 0
        plain: npt.NDArray[np.bool_] = kinds == block_texts.PLAIN
        plain &= ~v6 & (topic >= 0) & (topic != self._topics.find(SCHEDULE_TOPIC))
        plain &= block.physical_offset[rows] == block.offset[rows]
        return plain

    def _lines(self, block: UnitColumns, rows: Rows, file: str | None) -> list[str]:
        self._names += [_quoted(name) for name in self._topics.names[len(self._names) :]]
        first_row, last_row = int(rows[0]), int(rows[-1])
        base = int(block.offset[first_row]) - block.base
        data = block.buffer[base : int(block.offset[last_row]) + int(block.size[last_row]) - block.base].tobytes()
        text = data.decode("latin-1")  # texts of plain units are ASCII: a byte is a character
        columns = {name: _numbers(getattr(block, column)[rows]) for name, column in NUMBERS.items()}
        columns["type"], columns["file"] = _constant('"unit"'), _constant(_quoted(file))
        columns["topic"] = _lookup_column(self._names, block.topic_id[rows])
        columns["crc"] = _lookup_column(_CRC, block.crc[rows])
        columns["bornHost"], _ = _hosts(block, rows, _HOST_AT)
        columns["storeHost"], ids = _hosts(block, rows, _HOST_AT + _HOST + 8)
        columns["offsetMsgId"] = _JsonColumn(f'"{ids.form}%016X"', [*ids.values, block.physical_offset[rows].tolist()])
        texts = block_texts.Texts(block.buffer, block.properties_position[rows], block.properties_length[rows])
        columns["properties"] = _JsonColumn("%s", [_pairs([text[start:end] for start, end in _spans(texts, base)])])
        for name, of in (("tags", properties.TAGS), ("uniqueKey", properties.UNIQUE_KEY), ("keys", properties.KEYS)):
            values = block_texts.property_values(block, rows, of.encode())
            columns[name] = _texts(
                [text[start:end] if start >= 0 else None for start, end in _spans(values, base)], name == "keys"
            )
        bodies = [data[start:end] for start, end in _spans(block_texts.bodies(block, rows), base)]
        columns["bodySha256"] = _JsonColumn('"%s"', [[hashlib.sha256(body).hexdigest() for body in bodies]])
        if self._body:
            columns["body"] = _JsonColumn('"%s"', [[base64.b64encode(body).decode() for body in bodies]])
        if self._decoders is not None:
            columns["decoded"] = self._decoded(self._decoders, block, rows, bodies)
        names = (*records.UNIT_NAMES, *(["body"] if self._body else []))
        fields = [f'"{name}":{columns[name].form}' for name in names]
        if self._decoders is not None:
            names, fields = (*names, "decoded"), [*fields, columns["decoded"].form]
        form = "{" + ",".join(fields) + "}\n"
        return list(map(form.__mod__, zip(*(values for name in names for values in columns[name].values), strict=True)))

    def _decoded(self, decoders: BodyDecoders, block: UnitColumns, rows: Rows, bodies: list[bytes]) -> _JsonColumn:
        """The three fields of decoded bodies in one text."""
        topics, flags = block.topic_id[rows].tolist(), block.sys_flag[rows].tolist()
        names = self._topics.names
        texts = []
        for topic, flag, body in zip(topics, flags, bodies, strict=True):
            fields = records.decoded(decoders.decode_message(names[topic], None, {}, body, flag))
            texts.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":"))[1:-1])
        return _JsonColumn("%s", [texts])


@dataclass(frozen=True, slots=True)
class _JsonColumn:
    """A field of several lines: its format, and the values for each place in it. Constant values are part of the
    format.
    """

    form: str
    values: list[list[Any]] = field(default_factory=list)


def _quoted(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)


def _constant(text: str) -> _JsonColumn:
    return _JsonColumn(text.replace("%", "%%"))


def _numbers(column: npt.NDArray[Any]) -> _JsonColumn:
    if column.min() == column.max():
        return _constant(str(column[0]))
    return _JsonColumn("%d", [column.tolist()])


def _lookup_column(texts: Sequence[str], numbers: npt.NDArray[Any]) -> _JsonColumn:
    if numbers.min() == numbers.max():
        return _constant(texts[int(numbers[0])])
    return _JsonColumn("%s", [[texts[number] for number in numbers.tolist()]])


def _hosts(block: UnitColumns, rows: Rows, position: int) -> tuple[_JsonColumn, _JsonColumn]:
    """IPv4 hosts at ``position`` bytes behind the beginning of each unit: as JSON, and in upper-case hex."""
    raw = block_texts.fixed_width_bytes(block, block.offset[rows] - block.base + position, _HOST)
    hosts, numbers = np.unique(raw, return_inverse=True)
    padded = [host.ljust(_HOST, b"\0") for host in hosts.tolist()]
    quoted = [_quoted(message.host_text(host)) for host in padded]
    return _lookup_column(quoted, numbers), _lookup_column([host.hex().upper() for host in padded], numbers)


def _spans(texts: block_texts.Texts, base: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each text, counted from ``base``; a begin below 0 means no text."""
    starts = np.where(texts.starts < 0, -1, texts.starts - base)
    return zip(starts.tolist(), (starts + texts.sizes).tolist(), strict=True)


def _pairs(texts: list[str]) -> list[str]:
    """Convert property texts to JSON objects at once: none of them contains a line end or a quote."""
    joined = "\n".join(texts).replace("\x02\n", "\n").removesuffix("\x02")
    inside = joined.replace("\x01", '":"').replace("\x02", '","').replace("\n", '"}\n{"')
    return ('{"' + inside + '"}').replace('{""}', "{}").split("\n")


def _texts(texts: list[str | None], listed: bool) -> _JsonColumn:
    """Values of a property, or of a list of keys."""
    if None not in texts and not (listed and any(" " in text for text in texts if text)):
        return _JsonColumn('["%s"]' if listed else '"%s"', [texts])
    if listed:
        keys = ([f'"{key}"' for key in properties.split_keys(text)] for text in texts)
        return _JsonColumn("[%s]", [[",".join(each) for each in keys]])
    return _JsonColumn("%s", [["null" if text is None else f'"{text}"' for text in texts]])
