"""The bytes of a finding: of the log with the fields of the unit, of a queue file with those of an entry."""

from __future__ import annotations

from pathlib import Path

from raw_units import raw_unit

from engine.rules.catalogue import RULES
from engine.rules.findings import Finding
from viewer.pane.finding_bytes import bytes_of

LOG_FILE = "/s/commitlog/00000000000000000000"


def finding(id_: str, file: str | None, offset: int | None = None, **evidence: object) -> Finding:
    return RULES[id_].finding("message", file, offset, evidence)


def no_log(_offset: int, _size: int) -> bytes:
    return b""


def test_a_unit_of_the_log_has_its_fields_and_marked_bytes() -> None:
    unit = raw_unit(100)
    hex_input = bytes_of(finding("CL03", LOG_FILE, 100, bytePositions=[120]), lambda _offset, _size: unit, 4096)
    assert (hex_input.start, hex_input.size, hex_input.high) == (100, len(unit), 4096)
    assert hex_input.frames == ((120, 1, "live"),)
    assert (bool(hex_input.fields), hex_input.damage) == (True, ())


def test_bytes_that_are_no_unit_are_damage() -> None:
    hex_input = bytes_of(finding("CL01", LOG_FILE, 100, size=32), no_log, 4096)
    assert (hex_input.fields, hex_input.damage) == ((), ((100, 132),))


def test_an_entry_of_a_queue_file_has_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "consumequeue" / "T" / "0" / "00000000000000000000"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(range(60)))
    hex_input = bytes_of(finding("CQ03", str(path), 20), no_log, 0)
    assert [field.name for field in hex_input.fields] == ["physicalOffset", "size", "tagsCode"]
    assert (hex_input.size, hex_input.high) == (20, 60)
    assert hex_input.read is not None
    assert hex_input.read(20, 20) == bytes(range(20, 40))


def test_a_file_that_is_gone_shows_nothing(tmp_path: Path) -> None:
    assert bytes_of(finding("CK01", str(tmp_path / "checkpoint"), 8), no_log, 0).read is None
    assert bytes_of(finding("CK01", None), no_log, 0).read is None
