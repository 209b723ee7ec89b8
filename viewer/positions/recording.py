"""A recording of positions as JSON lines: a head, then one line a reading. A truncated file still opens.

``{"type": "recording", "version": 1, "store": …, "begun": ms, "positions": [names], "how": {…}, "why": {…}}`` first;
then ``{"at": ms, "units": n, "offsets": [nine numbers or null], "files": [[start, end, name]], "flushes": [[at, to,
bytes, ms, waiters]], "paused": [names], "statuses": {name: count}, "live": bool, "lab": bool, "checkpoint": ms}``;
``files`` and ``statuses`` only where they changed. Offsets are bytes, times ms since 1970. No Qt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.errors import StoreError
from engine.inspection.positions import Position, Positions
from engine.sentences import sentence
from viewer.runtime.position_reading import KEYS, Flush, PositionReading, Service
from viewer.runtime.recorded_lines import RecordedLines, object_of

VERSION = 1
UNKNOWN_WHEN_RECORDED = "it was not known when this was recorded"


class NoRecording(StoreError):
    """The file is no recording of positions, or one that cannot be read here."""


def head_line(store: str, reading: PositionReading) -> str:
    """Return the first line of a recording whose first reading is ``reading``."""
    positions = {key: reading.position(key) for key in KEYS}
    head = {
        "type": "recording",
        "version": VERSION,
        "store": store,
        "begun": reading.time_ms,
        "positions": list(KEYS),
        "how": {key: position.source for key, position in positions.items() if position.source},
        "why": {key: position.why for key, position in positions.items() if position.why},
    }
    return json.dumps(head, ensure_ascii=False) + "\n"


def reading_line(reading: PositionReading, previous: PositionReading | None) -> str:
    """Return one reading as a line; ``previous`` is the reading of the previous line."""
    line: dict[str, Any] = {"at": reading.time_ms, "units": reading.units, "offsets": list(reading.offsets())}
    if previous is None or previous.files != reading.files:
        line["files"] = [list(file) for file in reading.files]
    if reading.flushes:
        line["flushes"] = [[f.time_ms, f.to_offset, f.bytes, f.took_ms, f.waiters] for f in reading.flushes]
    if reading.statuses and (previous is None or previous.statuses != reading.statuses):
        line["statuses"] = dict(reading.statuses)
    paused = sorted(name for name, service in reading.services.items() if service.paused)
    if paused:
        line["paused"] = paused
    line |= {"live": reading.live, "lab": reading.lab, "checkpoint": reading.position("checkpoint").timestamp}
    return json.dumps(line, ensure_ascii=False) + "\n"


def read_recording(path: Path) -> tuple[str, list[PositionReading]]:
    """Return path of the store and readings of a recording. A truncated last line is left out.

    Raises :class:`NoRecording` with what was found instead, ``OSError`` as it comes.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        head = object_of(lines.readline())
        if head.get("type") != "recording":
            raise NoRecording(sentence("expected a recording of positions, found something else"), file=str(path))
        if head.get("version") != VERSION or head.get("positions") != list(KEYS):
            raise NoRecording(
                sentence(
                    "this recording is of version {found}, known is {known}", found=head.get("version"), known=VERSION
                ),
                file=str(path),
            )
        readings = list(_readings(head, lines))
    if not readings:
        raise NoRecording(sentence("the recording holds no reading"), file=str(path))
    return str(head.get("store", "")), readings


def _readings(head: dict[str, Any], lines: Iterable[str]) -> Iterator[PositionReading]:
    files: tuple[tuple[int, int, str], ...] = ()
    sources, reasons = head.get("how") or {}, head.get("why") or {}
    statuses: dict[str, int] = {}
    for text in lines:
        line = object_of(text)
        try:
            if "files" in line:
                files = tuple((int(a), int(b), str(name)) for a, b, name in line["files"])
            if "statuses" in line:
                statuses = {str(name): int(count) for name, count in line["statuses"].items()}
            offsets = dict(zip(KEYS, line["offsets"], strict=True))
            positions_by_key = {key: _position(key, offset, sources, reasons) for key, offset in offsets.items()}
            time = line.get("checkpoint")
            point = Position(
                positions_by_key["checkpoint"].offset,
                positions_by_key["checkpoint"].source,
                positions_by_key["checkpoint"].why,
                time,
            )
            positions = Positions(
                checkpoint={"physicMsgTimestamp": point},
                epochs={},
                **{key: position for key, position in positions_by_key.items() if key != "checkpoint"},
            )
            flushes = tuple(
                Flush(int(a), int(t), int(b), float(ms), int(w)) for a, t, b, ms, w in line.get("flushes", ())
            )
            services = {str(name): Service(True) for name in line.get("paused", ())}
            yield PositionReading(
                positions,
                files,
                (),
                int(line["at"]),
                bool(line.get("live")),
                bool(line.get("lab")),
                units=line.get("units"),
                flushes=flushes,
                services=services,
                statuses=statuses,
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            return  # cut off while it was written


def _position(key: str, offset: int | None, sources: dict[str, str], reasons: dict[str, str]) -> Position:
    if offset is None:
        return Position(None, why=reasons.get(key) or UNKNOWN_WHEN_RECORDED)
    return Position(int(offset), sources.get(key) or "as recorded")


class Recorder(RecordedLines):
    """Writes readings to a file. Lines stay in memory until :meth:`write`."""

    def __init__(self, path: Path, store: str) -> None:
        super().__init__(path)
        self._store = store
        self._before: PositionReading | None = None

    def add(self, reading: PositionReading) -> None:
        """Write one reading."""
        if self._before is None:
            self.keep(head_line(self._store, reading))
        self.keep(reading_line(reading, self._before))
        self._before = reading
        self.count += 1
