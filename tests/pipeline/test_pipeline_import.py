"""Exported and imported stores have every golden store's units again, byte for byte, and the engine can use them."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from golden_stores import third_of_names
from imported_stores import imported, written
from raw_units import raw_unit

from engine.cli.main import main
from engine.cli.pipeline_import import MAX_EMPTY_FILES
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.errors import StoreError
from engine.inspection.derived_config import derived_config
from engine.inspection.samples import sample
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore

pytest.importorskip("pyarrow")


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


def units_of(folder):
    with open_store(folder) as store:
        return [item for item in store.units() if isinstance(item, Unit) and not item.stale and item.crc != "bad"]


def kinds_of(folder):
    """Return a dictionary: topic → True if its queues are batch queues."""
    with open_store(folder) as store:
        return {
            topic: any(queue.kind == "batch" for queue in queues.values()) for topic, queues in store.topics().items()
        }


@pytest.mark.full_form(keep=6)
@pytest.mark.golden
@pytest.mark.parametrize("name", third_of_names(1))
def test_a_golden_store_comes_back_byte_for_byte(golden, tmp_path, name):
    folder = stores_of(golden(name))[0]
    units = units_of(folder)
    with open_store(folder) as store:
        complete = not any(isinstance(item, Damage) for item in store.units())
    done = imported(folder, tmp_path / "fresh", random.Random(name).choice([30_011, 400_009, 1 << 26]))
    assert (done.units, done.size) == (len(units), sum(unit.size for unit in units))
    imported_units = units_of(tmp_path / "fresh")
    if done.left or not complete:  # behind what was left behind all moves up
        assert [(u.topic, u.body, u.properties_raw, u.queue_offset) for u in imported_units] == [
            (u.topic, u.body, u.properties_raw, u.queue_offset) for u in units
        ]
    else:
        assert imported_units == units
    kinds, kinds_before = kinds_of(tmp_path / "fresh"), kinds_of(folder)
    assert {topic: kinds[topic] for topic in kinds} == {topic: kinds_before.get(topic, kinds[topic]) for topic in kinds}


@pytest.mark.golden
def test_the_engine_opens_what_was_imported_and_finds_nothing_wrong(golden, tmp_path, capsys):
    folder = stores_of(golden("clean-5.3.3"))[0]
    imported(folder, tmp_path / "fresh", 300_007)
    assert main(["check", str(tmp_path / "fresh"), "--json"]) == 0
    assert capsys.readouterr().err == ""
    units = units_of(folder)
    with open_store(tmp_path / "fresh") as store:
        config = derived_config(store)
    with MessageStore(tmp_path / "fresh", config) as store:
        unit = next(u for u in units if u.topic == "TopicA" and u.unique_key)
        assert store.look_message_by_offset(unit.offset).body == unit.body
        actual_units = store.query_message("TopicA", unit.unique_key, 32, 0, 1 << 62).units()
        assert [item.offset for item in actual_units] == [unit.offset]


def test_batch_topics_stay_batch_topics(tmp_path, capsys):
    """The log does not show which queues are batch queues, and a unit of one fills several queue offsets."""
    folder = sample("orders", cache_dir=tmp_path)
    assert main(["pipeline", "export", str(folder), "--out", str(tmp_path / "rows"), "--format", "json"]) == 0
    assert main(["pipeline", "import", str(tmp_path / "rows"), "--out", str(tmp_path / "fresh")]) == 0
    assert kinds_of(tmp_path / "fresh")["ClickBatches"]
    capsys.readouterr()
    main(["check", str(tmp_path / "fresh"), "--json"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {record["id"] for record in records if record.get("severity") == "error"} <= {"CF03"}, "tables are no units"


@pytest.mark.parametrize("batch_topics", ['["ClickBatches"]', '{"ClickBatches": "many"}', '{"Click/Batches": 4}'])
def test_batch_topics_that_are_none_are_one_line(tmp_path, capsys, batch_topics):
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "_storescope.json").write_text(
        f'{{"format": "json", "stores": [{{"store": "a", "batchTopics": {batch_topics}}}]}}'
    )
    (rows / "part-0.json").write_text("")
    assert main(["pipeline", "import", str(rows), "--out", str(tmp_path / "fresh")]) in {2, 3}
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "fresh").exists()


SMALL = {"mappedFileSizeCommitLog": 4096}
MANY_FILES = """
import resource, sys
sys.path[:0] = sys.argv[2:]
resource.setrlimit(resource.RLIMIT_NOFILE, (480, 480))
from pathlib import Path
from imported_stores import written
from raw_units import raw_unit
rows = [(number * 4096, "ok", raw_unit(number * 4096, body=bytes(3000), queue_offset=number)) for number in range(900)]
print(written(Path(sys.argv[1]), {"mappedFileSizeCommitLog": 4096}, rows).units)
"""


def test_a_store_of_more_files_than_there_are_descriptors_is_imported(tmp_path):
    """Each full file of the log kept its map, and with it a descriptor, until it was flushed: "Too many open files"."""
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", MANY_FILES, str(tmp_path / "fresh"), str(root), str(root / "tests" / "support")],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "900\n", "")
    assert len(list((tmp_path / "fresh" / "commitlog").iterdir())) == 900


def rows_at(*offsets):
    return [(offset, "ok", raw_unit(max(offset, 0), queue_offset=n)) for n, offset in enumerate(offsets)]


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        pytest.param((0, 1 << 50), "whole log files of 4,096 bytes without a unit: at most 64", id="a gap of 2^50"),
        pytest.param((0, *((n * 3) << 12 for n in range(1, 40))), "at most 64", id="many gaps"),
        pytest.param((-5, 0), "expected an offset in a log, found a unit with the physicalOffset -5", id="negative"),
        pytest.param(((1 << 63) - 100,), "expected an offset in a log", id="behind all offsets"),
        pytest.param((0, 50), "begins in front of the end of the one before it", id="over one another"),
        pytest.param((0, 0), "the rows are not those of one log", id="twice"),
    ],
)
def test_offsets_that_no_log_can_hold_are_refused_before_writing(tmp_path, offsets, why):
    """An export of two rows, 2^50 bytes apart, made an import write blank files until nothing could be opened."""
    with pytest.raises(StoreError, match=why):
        written(tmp_path / "fresh", SMALL, rows_at(*offsets))
    assert len(list((tmp_path / "fresh" / "commitlog").glob("*"))) <= MAX_EMPTY_FILES + 45


def test_units_left_out_by_a_filter_are_no_gap(tmp_path):
    offsets = (7 << 12, (7 << 12) + 400, 9 << 12, (20 << 12) + 96)
    written(tmp_path / "fresh", SMALL, rows_at(*offsets))
    with open_store(tmp_path / "fresh") as store:
        actual_offsets = [unit.offset for unit in store.units() if isinstance(unit, Unit)]
    assert [offset >> 12 for offset in actual_offsets] == [7, 7, 9, 20]
    assert (actual_offsets[0], actual_offsets[2]) == (7 << 12, 9 << 12)


def test_parquet_of_another_schema_is_told_in_a_line(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from engine.pipeline.export import arrow_schema
    from engine.pipeline.imports import check_columns

    place = tmp_path / "topic=a" / "day=2026-01-01"
    place.mkdir(parents=True)
    full_fields = [field for field in arrow_schema() if field.name not in ("topic", "day")]
    pq.write_table(pa.schema(full_fields).empty_table(), place / "part.parquet")
    check_columns(str(tmp_path), "parquet")
    changed = [field.with_type(pa.string()) if field.name == "queueOffset" else field for field in full_fields]
    for fields, why in (
        (changed, "column queueOffset: expected int64, found string"),
        (full_fields[1:3], "found none"),
    ):
        pq.write_table(pa.schema(fields).empty_table(), place / "part.parquet")
        with pytest.raises(StoreError, match=why):
            check_columns(str(tmp_path), "parquet")
    (place / "part.parquet").write_bytes(b"no Parquet")
    with pytest.raises(StoreError, match="expected Parquet that 'pipeline export' wrote"):
        check_columns(str(tmp_path), "parquet")
    check_columns(str(tmp_path), "csv")
