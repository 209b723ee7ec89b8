"""What a start of the real RocketMQ store does with queues in a RocksDB beside queues in files, and the reverse.

The older side is the one of the session before. Without more 5.5.1 starts twice; ``--peer-rounds N`` takes all states
and both releases.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import made_rocksdb
import peer
import pytest

from engine.config import from_mapping
from engine.inspection.findings import check
from engine.inspection.queue_sides import compare_sides, find_both_sides
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

DOUBLE = "rocksdbCQDoubleWriteEnable"
CONFIG = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    DOUBLE: "true",
}
PLAN = {
    "config": CONFIG,
    "topics": [{"name": "TopicA", "queues": 2}, {"name": "orders", "queues": 1}],
    "body": {"min": 0, "max": 300},
    "halfEvery": 31,
    "endHalfEvery": 43,
}
STATES = tuple(itertools.product(("5.5.1", "5.4.0"), ("rocksdb", "files"), (True, False), (True, False)))
"""Release, the older side, whether the store was closed, whether the start writes both."""
SHORT = (("5.5.1", "rocksdb", True, True), ("5.5.1", "rocksdb", True, False))


def pytest_generate_tests(metafunc):
    if "older" not in metafunc.fixturenames:
        return
    states = SHORT if metafunc.config.getoption("--peer-rounds") == 1 else STATES
    metafunc.parametrize(("release", "older", "is_closed", "is_double"), states)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """``stores(release)``: a store that wrote both, and beside it ``earlier``, its queues of the session before."""
    written: dict[str, Path] = {}

    def store_of(release: str) -> Path:
        made_rocksdb.binding()
        if release not in written:
            work = tmp_path_factory.mktemp(f"both-{release}")
            partner = peer.Peer(release, work)
            partner.write({**PLAN, "seed": 5, "count": 300}, work / "store")
            shutil.copytree(work / "store" / "consumequeue", work / "earlier")
            partner.write({**PLAN, "seed": 6, "count": 300, "uniqStart": 20_000}, work / "store")
            written[release] = work / "store"
        return written[release]

    return store_of


def parts_of(folder: Path, side: str) -> Iterator[Path]:
    """The files of the RocksDB, or the folders of the topics: both are in one folder."""
    return (path for path in folder.iterdir() if path.is_file() == (side == "rocksdb"))


def take_older(root: Path, earlier: Path, side: str) -> None:
    for path in list(parts_of(root / "consumequeue", side)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in parts_of(earlier, side):
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        copy(path, root / "consumequeue" / path.name)


def content(root: Path, side: str) -> dict[str, bytes]:
    folder = root / "consumequeue"
    files = (file for part in parts_of(folder, side) for file in ([part] if part.is_file() else part.rglob("*")))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.is_file()}


def test_a_start_does_with_the_other_side_what_we_say(release, older, is_closed, is_double, stores, tmp_path):
    source = stores(release)
    root = shutil.copytree(source, tmp_path / "store")
    take_older(root, source.with_name("earlier"), older)
    if not is_closed:
        (root / "abort").write_text("4711")
    config = from_mapping({**CONFIG, "storeType": "default", DOUBLE: str(is_double).lower()})[0]
    with open_store(root, config) as store:
        both = find_both_sides(store)
        assert any(queue.first_difference is not None for queue in compare_sides(store))
    assert both.counting == "files"
    rocksdb_before = content(root, "rocksdb")

    peer.Peer(release, tmp_path).dump(
        {**PLAN, "config": {**CONFIG, DOUBLE: str(is_double).lower()}}, root, in_place=True
    )

    if not is_double:
        assert "does not touch the RocksDB" in both.next_start
        assert content(root, "rocksdb") == rocksdb_before
        return
    with open_store(root, config) as store:
        differing = {queue.topic: queue for queue in compare_sides(store) if queue.first_difference is not None}
    assert "adds the entries that the RocksDB lacks" in both.next_start
    assert ("leaves out the first entry" in both.next_start) == is_closed
    if not is_closed:
        assert differing == {}
    elif older == "rocksdb":  # one entry is lacking in the middle
        # Or the rows were not yet written when the start compared the ends: then the queue begins anew at its end.
        assert differing
        for queue in differing.values():
            assert queue.files is not None
            assert queue.rocksdb in (queue.files, (queue.files[1], queue.files[1]))
    else:  # an entry is lacking in the files: the RocksDB begins anew at their end
        (queue,) = differing.values()
        assert queue.rocksdb == (queue.files[1], queue.files[1])


def test_a_start_refuses_to_read_from_a_rocksdb_whose_queue_ends_elsewhere(stores, tmp_path):
    """Consumers read the RocksDB, and the file queues are older. 5.4.0 throws the same, and does not end then."""
    source = stores("5.5.1")
    root = shutil.copytree(source, tmp_path / "store")
    take_older(root, source.with_name("earlier"), "files")
    settings = {**CONFIG, "storeType": "default", "combineCQPreferCQType": "defaultRocksDB"}
    with open_store(root, from_mapping(settings)[0]) as store:
        found = [item for item in check(store) if isinstance(item, Finding) and item.id == "CQ19"]
    assert ["the broker does not start" in finding.message for finding in found] == [True]
    assert "the broker then starts" in found[0].next_step

    _, death = peer.Peer("5.5.1", tmp_path).start_copy({**PLAN, "config": settings}, root)
    assert "currentReadStore not satisfied readable conditions" in death
