"""The files of a log as jobs read them: that of a DLedger log ends with its newest entry."""

from __future__ import annotations

import pytest
from dledger_damage import as_dledger
from handmade_stores import healthy

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.pipeline.files import find_stores, log_files
from engine.pipeline.queue_files import log_end
from engine.pipeline.splits import plan
from engine.pipeline.stats import sum_splits
from engine.pipeline.stats_report import files_of, report

pytestmark = [pytest.mark.spark, pytest.mark.golden]


def test_remains_of_replaced_entries_are_no_messages_of_a_job(golden):
    """Old entries stay behind the newest one, which a shorter one of a new leader replaced."""
    root = golden("dledger-replaced-5.5.1")
    places = find_stores(str(root))
    splits = plan(places, 20_000).splits
    total = report(sum_splits(splits), files_of(places, splits)).total
    with open_store(root) as store:
        units = [item for item in store.units() if isinstance(item, Unit)]
    assert (total["messages"], total["damage"], total["zeros"]) == (len(units), 0, 0) == (307, 0, 0)
    assert log_end(places[0], []) == 127_651


def test_classic_files_count_up_to_the_start_of_a_dledger_log(tmp_path):
    """A classic file of the same offset hid the data file of the DLedger log."""
    root = healthy().write(tmp_path / "store")
    classic = (root / "commitlog" / f"{0:020d}").read_bytes()
    as_dledger(root)
    (root / "commitlog").mkdir()
    (root / "commitlog" / f"{0:020d}").write_bytes(classic)
    (place,) = find_stores(str(root))
    assert [(file.start, file.has_entries) for file in log_files(place)] == [(0, True)]
    data = root / "dledger-n0" / "data" / f"{0:020d}"
    data.rename(data.with_name(f"{len(classic):020d}"))
    assert [(file.start, file.has_entries) for file in log_files(place)] == [(0, False), (len(classic), True)]
