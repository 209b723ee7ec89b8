"""Jobs and sources over DLedger logs: their messages are those that a walk of one process reads."""

from __future__ import annotations

import json
import shutil

import pytest
from dledger_damage import copy_store

from engine.cli.main import main
from engine.codec.columns import UNIT
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead
from engine.inspection.snapshot import open_store
from engine.pipeline.files import find_stores
from engine.pipeline.queue_files import log_end
from engine.pipeline.splits import SplitEnd, broken_seams, plan, read_split
from engine.pipeline.stats import sum_splits
from engine.pipeline.stats_report import files_of, report
from engine.pipeline.stream_offsets import Log

pytestmark = [pytest.mark.spark, pytest.mark.golden]
NAME = "dledger-crash-5.5.1"


def units_of(root):
    with open_store(root) as store:
        return [item for item in store.units() if isinstance(item, Unit)]


@pytest.mark.parametrize("split_bytes", [50_021, 1 << 30])
def test_splits_of_a_dledger_log_give_the_units_of_one_walk(golden, split_bytes):
    """A job refused such a store: ``cannot be read: its log is a DLedger log``."""
    places = find_stores(str(golden(NAME)))
    units, ends, damage = [], [], []
    for split in plan(places, split_bytes).splits:
        for block in read_split(split):
            if isinstance(block, SplitEnd):
                ends.append((split, block))
            elif isinstance(block, Damage):
                damage.append(block)
            else:
                rows = zip(block["offset"].tolist(), block["size"].tolist(), block["kind"].tolist(), strict=True)
                units += [(offset, size) for offset, size, kind in rows if kind == UNIT]
    assert units == [(unit.offset, unit.size) for unit in units_of(golden(NAME))]
    assert (damage, broken_seams(ends)) == ([], [])


def test_every_cut_beside_an_entry_gives_each_unit_once(golden):
    """A cut inside the header of an entry belongs to the split before, which must not give the unit behind it."""
    root = golden(NAME)
    first_units = units_of(root)[:3]
    places = find_stores(str(root))
    for cut in range(first_units[1].offset - 50, first_units[1].offset + 2):
        (file_split, *_) = plan(places, 1 << 30).splits
        offsets = []
        for start, stop in ((0, cut), (cut, first_units[2].offset)):
            part = type(file_split)(
                file_split.store,
                None,
                file_split.path,
                0,
                start,
                stop,
                file_split.file_size,
                exact=start == 0,
                has_entries=True,
            )
            for block in read_split(part, crc=False):
                if not isinstance(block, SplitEnd | Damage):
                    offsets += block["offset"].tolist()
        assert offsets == [unit.offset for unit in first_units[:2]], cut


def test_the_parts_of_a_data_file_are_its_bytes(golden):
    places = find_stores(str(golden(NAME)))
    splits = plan(places, 300_000).splits
    total = report(sum_splits(splits), files_of(places, splits)).total
    units = units_of(golden(NAME))
    assert (total["messages"], total["headers"]) == (len(units), 48 * len(units))
    names = ("unitBytes", "headers", "stale", "blank", "damage", "zeros")
    assert sum(total[name] for name in names) == total["bytes"]


def test_the_end_of_a_followed_log_is_that_of_its_last_unit(golden):
    (place,) = find_stores(str(golden(NAME)))
    units = units_of(golden(NAME))
    assert log_end(place, []) == log_end(place, [(units[-1].offset, units[-1].size)]) == units[-1].end
    log = Log(place)
    mark = log.last_before(units[-1].end)
    assert mark is not None
    assert (mark.offset, log.holds(mark)) == (units[-1].offset, True)
    assert log.since(units[700].store_timestamp, 0, units[-1].end) <= units[700].offset


def test_queues_rebuilt_from_a_dledger_log_are_those_of_its_broker(golden, tmp_path, capsys):
    out = tmp_path / "rebuilt"
    code = main(["pipeline", "rebuild", str(golden("broker-dledger-5.5.1")), "--out", str(out), "--compare", "--json"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert [record for record in records if record["type"] == "difference"] == []


def test_several_dledger_logs_are_refused_with_the_reason(golden, tmp_path, capsys):
    root = copy_store(golden(NAME), tmp_path / "store")
    shutil.copytree(root / "dledger-n0" / "data", root / "dledger-n1" / "data")
    (place,) = find_stores(str(root))
    assert isinstance(place.unread, CannotRead)
    assert main(["pipeline", "stats", str(root)]) == 3
    assert "it has 2 DLedger logs, and only the broker's dLegerSelfId says which one counts" in capsys.readouterr().err
