"""A filter's scan: every unit that matches, in order, as far as it was told to look.

The side index of a log is built, or left where it was stopped.

Frequencies are those of a plain walk, for columns, texts, lists and properties; what is left out is counted.

What an export says it has read is what files hold: a missing file was not read.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_stores import MadeStore, healthy

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.samples import sample
from engine.inspection.side_index import SideIndex
from engine.query import FIELDS, parse
from tests.support.controls import FakeControl
from viewer.log import work
from viewer.log.work import Frequencies, Hits, _held, count, count_values, first_look, scan


class Sent:
    """What a scan has emitted."""

    cancelled = False

    def __init__(self) -> None:
        self.found: list[int] = []
        self.looked = 0

    def check(self) -> None:
        """Never raises."""

    def report(self, *_told: object) -> None:
        """Nobody looks."""

    def emit(self, hits: Hits) -> None:
        self.found.extend(hits.offsets)
        self.looked = hits.looked


@pytest.fixture
def made() -> MadeStore:
    found = MadeStore()
    for number in range(90):
        found.put(topic=("Orders", "Paid", "Sent")[number % 3], keys=f"K{number}")
    return found


def test_all_that_matches_comes_in_order(made, tmp_path):
    sent = Sent()
    ended = scan(sent, made.write(tmp_path / "store"), None, 'topic = "Paid"', 0, 0, made.end, 1000)
    assert sent.found == [unit.offset for unit in made.units if unit.topic == "Paid"]
    assert ended.complete


def test_what_was_cut_goes_on_where_it_stopped(made, tmp_path):
    store, sent, start, rounds = made.write(tmp_path / "store"), Sent(), 0, 0
    while True:
        ended = scan(sent, store, None, 'topic = "Paid"', 0, start, made.end, 5)
        start, rounds = ended.looked, rounds + 1
        if ended.complete:
            break
    assert sent.found == [unit.offset for unit in made.units if unit.topic == "Paid"]
    assert rounds > 1


def test_the_first_look_ends_at_its_share_of_the_log(made, tmp_path):
    wanted = [unit.offset for unit in made.units if unit.topic == "Sent"]
    with open_store(made.write(tmp_path / "store")) as store:
        hits, complete = first_look(store.log, 'topic = "Sent"', 0, 0, made.end // 2)
        assert (list(hits.offsets), complete) == (wanted[: len(hits.offsets)], False)
        assert 0 < len(hits.offsets) < len(wanted)
        hits, complete = first_look(store.log, 'topic = "Sent"', 0, 0, 1 << 40)
        assert (list(hits.offsets), complete) == (wanted, True)


class Told:
    """A control that stops the work at once, or never."""

    def __init__(self, *, cancelled: bool) -> None:
        self.cancelled = cancelled
        self.reported: list[float] = []

    def check(self) -> None:
        """Never raises."""

    def report(self, done: float, _total: float | None = None, _note: str = "") -> None:
        self.reported.append(done)


@pytest.mark.parametrize("cancelled", [False, True])
def test_it_counts_to_the_end_or_says_that_it_did_not(tmp_path: Path, cancelled: bool) -> None:
    made = healthy(60)
    store = made.write(tmp_path / "store")
    assert count(Told(cancelled=cancelled), store, None, tmp_path / "cache") is not cancelled
    with open_store(store) as opened:
        index = SideIndex(opened.log, tmp_path / "cache")
        index.load()
        counted = index.total if index.segments else 0
    assert counted == 0 if cancelled else counted >= len(made.units)


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    with open_store(sample("orders")) as store:
        return [item for item in store.log.walk() if isinstance(item, Unit)]


def ask(field: str, where: str = "") -> Frequencies:
    return count_values(FakeControl(), sample("orders"), None, field, where, 0, 0, 1 << 21)


@pytest.mark.parametrize("field", ["queueId", "topic", "tags", "storeTimestamp", "crc"])
@pytest.mark.parametrize("where", ["", 'tags = "card" or size > 400'])
def test_counts_are_those_of_a_plain_walk(units: list[Unit], field: str, where: str) -> None:
    wanted = parse(where)
    expected = Counter(FIELDS[field].unit(unit) for unit in units if wanted.matches(unit))
    found = ask(field, where)
    assert dict(found.values) == dict(expected)
    assert found.units == sum(expected.values())
    assert found.complete
    assert [n for _, n in found.values] == sorted(expected.values(), reverse=True)


def test_lists_count_their_items_and_properties_are_fields(units: list[Unit]) -> None:
    keys = Counter(key for unit in units for key in unit.keys)
    found = dict(ask("keys").values)
    assert {key: n for key, n in found.items() if key is not None} == dict(keys)
    regions = Counter(unit.properties.get("region") for unit in units)
    assert dict(ask("properties.region").values) == dict(regions)


def test_too_many_values_are_said(units: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST", 10)
    found = ask("physicalOffset")
    assert len(found.values) == 10
    assert found.others == len(units) - 10
    assert found.units == len(units)


def test_a_missing_file_is_not_counted_as_read() -> None:
    """A log with one file gone said "2.33 MiB of log read", where 1.33 were there."""
    files = [SimpleNamespace(start_offset=at, end_offset=at + 100) for at in (0, 200)]
    log = SimpleNamespace(files=files)
    assert _held(log, 0, 250) == 150
    assert _held(log, 50, 90) == 40
    assert _held(log, 100, 200) == 0
