"""JSON lines built from whole blocks equal those of single units, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from golden_stores import names
from raw_units import raw_unit

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.inspection import open_store, records
from engine.inspection.log_reader import LogReader
from engine.inspection.matching import listed
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.query import parse
from engine.query.filter import Filter


def lines_of(items: Iterator[object], log: LogReader, body: bool) -> list[object]:
    """Return the lines of units, and all other items unchanged."""
    results: list[object] = []
    for item in items:
        if isinstance(item, records.Lines):
            results += item.text.split("\n")[:-1]
            assert item.text.count("\n") == item.units
        elif isinstance(item, Unit):
            record = records.unit(item, log.file_name(item.offset), body=body)
            results.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
        else:
            results.append(item)
    return results


def assert_same(log: LogReader, expected: Filter | None = None, *, crc: bool = True, body: bool = False) -> None:
    one_by_one = lines_of(listed(log, expected, crc=crc, body=body, near=1 << 40), log, body)
    assert isinstance(one_by_one[-1], Stop)
    for near in (0, 2000):
        assert lines_of(listed(log, expected, crc=crc, body=body, near=near), log, body) == one_by_one


@pytest.mark.full_form(keep=16)
@pytest.mark.golden
@pytest.mark.parametrize("name", names())
def test_every_store_gives_the_same_lines(golden: Callable[..., Path], name: str) -> None:
    with open_store(golden(name), None) as store:
        assert_same(store.log)
        assert_same(store.log, parse("queueId = 1"), crc=False, body=True)


ODD = [
    b"",
    b"a\x01b\x02",
    b"a\x01b",
    b"KEYS\x01k1 k2  k3\x02TAGS\x01t\x02UNIQ_KEY\x01u\x02",
    b"KEYS\x01  \x02a\x01b\x02",
    b"KEYS\x01 k\x02",
    b'a\x01say "no"\x02',
    b"a\x01back\\slash\x02",
    b"a\x01tab\there\x02",
    b"a\x01del\x7fete\x02",
    b"a\x011\x02a\x012\x02",
    b"a\x01\x02b\x011\x02",
    b"\x01x\x02b\x011\x02",
    b"a\x01x\x01y\x02",
    b"a\x01x\x02\x02b\x01y\x02",
    b"\x02a\x01x\x02",
    b"no pair\x02a\x01x\x02",
    "名\x01值\x02KEYS\x01ключ\x02".encode(),
    b"a\x01\xff\xfe\x02",
    b"a\x01%s %d %%\x02",
    b"".join(b"n%d\x01v\x02" % number for number in range(60)),
]


def test_any_properties_give_the_same_lines(tmp_path: Path) -> None:
    units = []
    for number, text in enumerate(ODD * 2):
        offset = sum(map(len, units))
        units.append(
            raw_unit(offset=offset, properties=text, body=b"x" * number, topic=b"T" if number % 5 else b'T"%s')
        )
    folder = tmp_path / "commitlog"
    folder.mkdir()
    (folder / f"{0:020d}").write_bytes(b"".join(units) + bytes(4096))
    log = LogReader(FileSequence([folder], DescriptorCache()))
    assert_same(log)
    assert_same(log, parse("size > 0"), body=True)


def test_without_compiled_code_the_lines_are_the_same(
    golden: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    with open_store(golden("broker-orders"), None) as store:
        assert_same(store.log)
