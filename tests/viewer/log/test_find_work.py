"""Find gives the same rows as a plain walk, forwards and backwards, with and without a filter, also in compressed
bodies.
"""

from __future__ import annotations

import pytest

from engine.codec.message import COMPRESSED, Unit
from engine.codec.unit_scan import Damage
from engine.inspection import open_store
from engine.inspection.samples import sample
from engine.query import parse
from tests.support.controls import FakeControl
from viewer.log import find_work
from viewer.log.find_work import FindResult, find, find_near, find_near_back, spans_in, unit_holds
from viewer.widgets.search_term import SearchTerm

SOUGHT = (
    SearchTerm("text", "so-00001"),
    SearchTerm("hex", "DA A3 20 A7"),
    SearchTerm("regex", "eu-[a-z]+"),
    SearchTerm("number", "100..140"),
    SearchTerm("text", "nobody has this"),
)


@pytest.fixture(scope="module")
def store():
    with open_store(sample("orders-damaged")) as opened:
        yield opened


def plain(store, sought: SearchTerm, within: str = "") -> list[int]:
    """Return the offsets of all rows that contain the term, by a plain walk."""
    expected = parse(within)
    offsets = []
    for item in store.log.walk(crc=False):
        if isinstance(item, Unit):
            is_hit = expected.matches(item) and unit_holds(store.log, sought, item)
        else:
            is_hit = isinstance(item, Damage) and not within and sought.find(store.log.read(item.offset, item.size))
        if is_hit:
            offsets.append(item.offset)
    return offsets


def find_from(store, sought: SearchTerm, start_offset: int, forward: bool = True, within: str = "") -> FindResult:
    return find(FakeControl(), store.path, None, sought, within, 0, start_offset, 0, store.log.max_offset, forward)


@pytest.mark.parametrize("sought", SOUGHT, ids=lambda s: f"{s.kind} {s.text}")
@pytest.mark.parametrize("within", ["", 'topic = "OrderPaid"'])
def test_rows_are_those_of_a_plain_walk(store, sought: SearchTerm, within: str) -> None:
    expected = plain(store, sought, within)
    offset, offsets = 0, []
    while (
        len(offsets) < 8
        and (hit := find_from(store, sought, offset, within=within)).offset is not None
        and not hit.wrapped
    ):
        offsets.append(hit.offset)
        offset = hit.offset + 1
    assert offsets == [o for o in expected if o < store.log.max_offset][:8]


def test_a_backward_search_wraps_and_reports_it(store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_work, "STEP_BACK", 1 << 17)
    expected = plain(store, SOUGHT[0])
    hit = find_from(store, SOUGHT[0], expected[2], forward=False)
    assert (hit.offset, hit.wrapped) == (expected[1], False)
    hit = find_from(store, SOUGHT[0], expected[0], forward=False)
    assert (hit.offset, hit.wrapped) == (expected[-1], True)
    hit = find_from(store, SOUGHT[0], expected[-1] + 1)
    assert (hit.offset, hit.wrapped) == (expected[0], True)
    missed = find_from(store, SOUGHT[-1], 5000)
    assert missed.offset is None
    assert missed.complete
    assert missed.looked >= store.log.max_offset - 5000


def test_near_answers_are_the_same(store) -> None:
    expected = plain(store, SOUGHT[0])
    assert find_near(store.log, SOUGHT[0], "", 0, 0, 1 << 21).offset == expected[0]
    assert find_near_back(store.log, SOUGHT[0], "", 0, expected[3]).offset == expected[2]
    assert find_near(store.log, SOUGHT[-1], "", 0, 0, 4096).complete is False


def test_compressed_bodies_are_searched() -> None:
    with open_store(sample("orders")) as store:
        packed = next(u for u in store.log.walk() if isinstance(u, Unit) and u.sys_flag & COMPRESSED)
        from engine.codec.compression import unpack

        text = unpack(packed.body, packed.sys_flag).data.decode()
        piece = text[len(text) // 2 : len(text) // 2 + 24]
        sought = SearchTerm("text", piece, case=True)
        raw = store.log.read(packed.offset, packed.size)
        assert sought.find(raw) is None, "the stored bytes do not show it"
        assert find_from(store, sought, packed.offset).offset == packed.offset
        without = SearchTerm("text", piece, case=True, bodies=False)
        assert find_from(store, without, packed.offset).offset != packed.offset
        assert spans_in(store.log, sought, packed.offset, packed.size) == ([], "body")


def test_spans_name_their_field(store) -> None:
    unit = next(u for u in store.log.walk() if isinstance(u, Unit))
    spans, field = spans_in(store.log, SearchTerm("hex", "DA A3 20 A7"), unit.offset, unit.size)
    assert (spans[0], field) == ((unit.offset + 4, unit.offset + 8), "magicCode")
    _, field = spans_in(store.log, SearchTerm("number", str(unit.size)), unit.offset, unit.size)
    assert field == "totalSize"
