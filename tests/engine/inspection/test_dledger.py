"""A DLedger log is read like any other log of messages."""

from __future__ import annotations

import agree
import pytest
from dledger_damage import DAMAGE, as_dledger, copy_store
from handmade_stores import healthy

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import open_store

NAME = "broker-dledger-5.5.1"


@pytest.mark.golden
def test_the_units_of_a_dledger_log_are_where_its_queues_point(golden):
    """Everything about the messages of such a store was "not decoded"."""
    with open_store(golden(NAME)) as store:
        units = {item.offset: item.size for item in store.units() if isinstance(item, Unit)}
        entries = {
            (entry.physical_offset, entry.size)
            for queues in store.topics().values()
            for queue in queues.values()
            for entry in queue.entries(queue.min_offset, queue.max_offset)
        }
        assert len(units) == 2813
        assert len(entries) == 2808
        assert entries <= set(units.items())
        assert (store.log.min_offset, store.log.max_offset) == (0, 2_600_441)


@pytest.mark.golden
@pytest.mark.parametrize("plain", ["", "1"])
def test_a_scan_by_columns_finds_what_the_walk_finds(golden, monkeypatch, plain):
    monkeypatch.setenv("STORESCOPE_PLAIN", plain)
    with open_store(golden(NAME)) as store:
        walked = [item.offset for item in store.log.walk() if not isinstance(item, Stop)]
        scanned = [offset for block in scan_log(store.log) if not isinstance(block, Stop) for offset in block["offset"]]
    assert scanned == walked


@pytest.mark.golden
def test_a_unit_names_the_entry_around_it(golden):
    with open_store(golden(NAME)) as store:
        header = store.log.entry_header(48)
        assert (header.index, header.term, header.position, header.body_size) == (0, 0, 0, 848)
        assert store.log.entry_header(49) is None
        items = store.log.items_before(store.log.max_offset, 3)
        assert [store.log.entry_header(item.offset).index for item in items] == [2810, 2811, 2812]
        assert store.log.align(0) == 48


@pytest.mark.golden
def test_a_data_folder_alone_is_read(golden):
    with open_store(golden(NAME) / "dledger-n0" / "data") as log:
        assert sum(isinstance(item, Unit) for item in log.units()) == 2813


@pytest.mark.golden
def test_info_shows_the_entries_of_a_dledger_log(golden):
    info = agree.records_of("info", golden(NAME))[0]
    assert info["dledger"] == {
        "folder": "dledger-n0/data",
        "member": "n0",
        "firstIndex": 0,
        "lastIndex": 2812,
        "lastTerm": 0,
        "committedIndex": 2812,
        "currentTerm": 0,
        "votedFor": "n0",
        "terms": [{"term": 0, "firstIndex": 0, "startOffset": 48}],
    }
    assert (info["flavour"], info["notes"]) == (["v1", "dledger"], [])
    assert [part["folder"] for part in info["undecoded"]] == ["rocksdbstore"]


@pytest.mark.golden
@pytest.mark.parametrize(("case", "end"), [("gap", 2_181_997), ("torn-body", 2_600_441), ("torn-header", 2_599_943)])
def test_the_log_ends_where_a_start_on_dledger_ends_it(golden, tmp_path, case, end):
    """A start reads the headers of entries, and no body."""
    root = copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")
    DAMAGE[case](root)
    with open_store(root) as store:
        store.commit_log.settle_end()
        assert store.log.max_offset == end


def test_a_classic_file_behind_the_start_of_a_dledger_log_is_not_read(tmp_path):
    root = healthy(20).write(tmp_path / "store")
    classic = (root / "commitlog" / f"{0:020d}").read_bytes()
    as_dledger(root)
    (root / "commitlog").mkdir()
    (root / "commitlog" / f"{0:020d}").write_bytes(classic)
    with open_store(root) as store:
        assert [item.offset for item in store.units() if isinstance(item, Unit)][0] == 48
        assert [oddity.kind for oddity in store.log.sequence.oddities] == ["stray"]


@pytest.mark.golden
def test_the_log_of_a_member_ends_before_the_remains_of_entries_that_a_leader_replaced(golden):
    """The new leader's entries were shorter. What is left of the old ones behind them was read as damage and 21
    messages.
    """
    with open_store(golden("dledger-replaced-5.5.1")) as store:
        assert store.log.remains_from == store.log.max_offset == 127_651
        items = list(store.log.walk())
        assert len([item for item in items if isinstance(item, Unit)]) == 307
        assert (items[-1].kind, items[-1].offset, len(items)) == ("zero", 127_651, 308)
        blocks = list(scan_log(store.log))
        assert sum(block.count for block in blocks[:-1]) == 307
        assert blocks[-1] == items[-1]
        assert isinstance(store.log.unit_at(127_976), Stop)
    with open_store(golden("dledger-old-leader-5.5.1")) as store:
        assert (store.log.remains_from, store.log.max_offset) == (None, 136_442)


@pytest.mark.golden
def test_terms_of_leaders_are_positions(golden):
    record = agree.records_of("positions", golden("dledger-replaced-5.5.1"))[0]
    assert {name: place["offset"] for name, place in record["epochs"].items()} == {"1": 48, "2": 125_138}
    info = agree.records_of("info", golden("dledger-replaced-5.5.1"))[0]
    assert info["dledger"]["terms"] == [
        {"term": 1, "firstIndex": 0, "startOffset": 48},
        {"term": 2, "firstIndex": 300, "startOffset": 125_138},
    ]


@pytest.mark.golden
def test_the_end_of_a_member_is_found_with_an_older_checkpoint(golden, tmp_path):
    """It is written every few seconds: a member that was killed just after its entries were replaced has the end of
    the old ones in it.
    """
    root = copy_store(golden("dledger-replaced-5.5.1"), tmp_path / "store", member="dledger-n1")
    (root / "dledger-n1" / "checkpoint").write_text("committedIndex=299\nendIndex=327\n")
    with open_store(root) as store:
        assert store.log.remains_from == store.log.max_offset == 127_651
