"""Starts of a store with its queues in a RocksDB, planned by us and carried out by the real RocketMQ store.

The states are crashes, logs that lost their tail or a byte, databases of an earlier time or none at all, and damaged
ones: a torn write-ahead log, a missing table file, a MANIFEST of another time, a missing column family. No plan is made
for a database that cannot be read. Without more a few are started; ``--peer-rounds N`` starts four a seed by each
release. The same is done to stores whose broker also writes file queues and lets consumers read the RocksDB.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import made_rocksdb
import peer
import pytest

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import CannotRead
from engine.inspection import recovery
from engine.inspection.snapshot import open_store
from engine.system_names import LMQ_PREFIX

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

SHORT = {"5.5.1": 5, "5.4.0": 0, "5.3.3": 0}
"""How many states of each release are tried where nobody asks for more."""
SHORT_BOTH = {"5.5.1": 2, "5.4.0": 0}
COPIES = 4
DAMAGE = ("torn log", "missing table", "other manifest", "missing family")
PLAN = peer.ROCKSDB_PLAN
LOG_SIZE = PLAN["config"]["mappedFileSizeCommitLog"]


def pytest_generate_tests(metafunc):
    first = metafunc.config.getoption("--peer-seed") * COPIES
    rounds = metafunc.config.getoption("--peer-rounds")
    short = SHORT if metafunc.function is test_a_start_is_planned_as_rocketmq_makes_it else SHORT_BOTH
    counts = short if rounds == 1 else dict.fromkeys(short, rounds * COPIES)
    cases = [(release, seed) for release, count in counts.items() for seed in range(first, first + count)]
    metafunc.parametrize(("release", "seed"), cases)


BOTH = {
    "storeType": "default",
    "rocksdbCQDoubleWriteEnable": "true",
    "combineCQPreferCQType": "defaultRocksDB",
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """``stores(release, kind)``: a store that was closed, one that crashed with its rows in memory, and one that did so
    after a flush. Beside each is ``earlier``, its database of the session before.
    """
    made_rocksdb.binding()
    made: dict[tuple[str, str, bool], Path] = {}

    def store_of(release: str, kind: str, *, is_both: bool = False) -> Path:
        if (release, kind, is_both) not in made:
            work = tmp_path_factory.mktemp(f"{kind}-{release}")
            partner = peer.Peer(release, work)
            plan = {**PLAN, "config": {**PLAN["config"], **BOTH}} if is_both else PLAN
            partner.write({**plan, "seed": 7, "count": 300}, work / "store")
            shutil.copytree(work / "store" / "consumequeue", work / "earlier")
            second = {**plan, "seed": 8, "count": 500, "uniqStart": 20_000}
            if kind != "clean":
                second |= {"crash": kind, "crashAfter": 480}
            partner.write(second, work / "store")
            made[release, kind, is_both] = work / "store"
        return made[release, kind, is_both]

    return store_of


def damage_database(rng: random.Random, folder: Path, earlier: Path, damage: str) -> None:
    """Damage the database in ``folder``; where it has no such file it stays as it is."""
    if damage == "torn log":
        logs = [path for path in sorted(folder.glob("*.log")) if path.stat().st_size]
        for path in logs[-1:]:
            with path.open("r+b") as file:
                file.truncate(rng.randrange(path.stat().st_size))
    elif damage == "missing table":
        for path in sorted(folder.glob("*.sst"))[:1]:
            path.unlink()
    elif damage == "other manifest":
        for path in folder.glob("MANIFEST-*"):
            path.unlink()
        (manifest,) = earlier.glob("MANIFEST-*")
        shutil.copy(manifest, folder)
        shutil.copy(earlier / "CURRENT", folder)
    else:
        rows = made_rocksdb.read_rows(folder)
        del rows["offset"]
        made_rocksdb.make_database(folder, rows)


def spoil(rng: random.Random, root: Path, earlier: Path) -> list[str]:
    """Do to a store what crashes, disks and hands do to it; returns what it was."""
    harm = []
    files = sorted((root / "commitlog").iterdir())
    log_end = sum(len(file.read_bytes().rstrip(b"\0")) or LOG_SIZE for file in files[:-1]) + len(
        files[-1].read_bytes().rstrip(b"\0")
    )
    database = rng.choice(("same", "same", "earlier", "none", *DAMAGE))
    if database != "same":
        harm.append(f"database {database}")
    if database in {"earlier", "none"}:
        shutil.rmtree(root / "consumequeue")
    if database == "earlier":
        shutil.copytree(earlier, root / "consumequeue")
    if database in DAMAGE:
        damage_database(rng, root / "consumequeue", earlier, database)
    log = rng.choice(("same", "tail", "flip"))
    place = rng.randrange(max(log_end, 1))
    if log == "tail":
        for number, file in enumerate(files):
            keep = min(max(place - number * LOG_SIZE, 0), LOG_SIZE)
            with file.open("r+b") as data:
                data.seek(keep)
                data.write(bytes(LOG_SIZE - keep))
        harm.append(f"log zero from {place}")
    elif log == "flip":
        with files[place // LOG_SIZE].open("r+b") as data:
            data.seek(place % LOG_SIZE)
            byte = data.read(1)
            data.seek(place % LOG_SIZE)
            data.write(bytes([byte[0] ^ 0xFF]))
        harm.append(f"byte {place} flipped")
    if rng.random() < 0.5:
        was_closed = not (root / "abort").exists()
        (root / "abort").unlink(missing_ok=True)
        if was_closed:
            (root / "abort").write_text("4711")
        harm.append("abort turned over")
    return harm


def take_older_side(rng: random.Random, root: Path, earlier: Path) -> list[str]:
    """Replace the files of one of the two kinds of queues by those of the session before, or remove them."""
    side = rng.choice(("rocksdb", "files"))
    age = rng.choice(("same", "earlier", "earlier", "none"))
    if age == "same":
        return []
    for folder in (root / "consumequeue", earlier):
        for path in list(folder.iterdir()) if folder != earlier or age == "earlier" else ():
            if path.is_file() != (side == "rocksdb"):
                continue
            if folder != earlier:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            else:
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, root / "consumequeue" / path.name)
    return [f"{side} {age}"]


def test_a_start_that_reads_the_rocksdb_of_both_is_planned_as_rocketmq_makes_it(release, seed, stores, tmp_path):
    rng = random.Random(f"both {seed}")
    kind = ("clean", "now", "flushed")[seed % 3]
    source = stores(release, kind, is_both=True)
    root = shutil.copytree(source, tmp_path / "store")
    harm = [kind, *take_older_side(rng, root, source.with_name("earlier"))]
    if rng.random() < 0.4:
        was_closed = not (root / "abort").exists()
        (root / "abort").write_text("4711") if was_closed else (root / "abort").unlink()
        harm.append("abort turned over")
    settings = {
        **PLAN["config"],
        **BOTH,
        "combineAssignOffsetCQType": rng.choice(("default", "default", "defaultRocksDB")),
        "combineCQMaxExtraSearchCommitLogFiles": rng.choice((0, 1, 3)),
        "commitLogRecoverMaxNum": rng.choice((2, 10, 50)),
        "timerWheelEnable": "false",
    }
    if release == "5.5.1":
        settings["combineCQUseRocksdbForLmq"] = rng.choice(("true", "false"))
    harm.append(str({key: value for key, value in settings.items() if key not in PLAN["config"] and key not in BOTH}))
    if "rocksdb none" in harm:
        made_rocksdb.make_database(tmp_path / "empty", {"default": {}, "offset": {}})
        for path in (tmp_path / "empty").iterdir():
            shutil.copy2(path, root / "consumequeue" / path.name)
    with open_store(root, from_mapping({key: str(value) for key, value in settings.items()})[0]) as opened:
        opened.release = release[:3]
        ours = recovery.plan(opened, release[:3])
    if release == "5.4.0" and not ours.will_start:
        return  # it does not end then

    account, death = peer.Peer(release, tmp_path).start_copy({**PLAN, "config": settings}, root)
    state = next((row for row in account if row["t"] == "state" and row["when"] == "started"), None)
    may_refuse = any("may compare the ends" in note for note in ours.notes)
    if state is None and may_refuse:
        return
    assert ours.will_start == (state is not None), f"{harm} {ours.blockers} {death}"
    if state is None:
        words = "incorrect config" if ours.blockers[-1].finding == "CF05" else "not satisfied readable conditions"
        assert not death or words in death, harm
        return
    assert ours.end_offset == state["maxPhy"], harm
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started" and row["max"]]
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}
    bounds = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in ours.queues if q.max_offset}
    assert {key: bounds.get(key, (0, 0))[1] for key in theirs} == {key: end for key, (_, end) in theirs.items()}, harm
    if settings["combineAssignOffsetCQType"] == "default":  # else no queue of the RocksDB is in use yet
        assert bounds.keys() <= theirs.keys(), harm


def test_a_start_is_planned_as_rocketmq_makes_it(release, seed, stores, tmp_path):
    rng = random.Random(f"rocksdb {seed}")
    kind = ("clean", "now", "flushed")[seed % 3]
    source = stores(release, kind)
    root = tmp_path / "store"
    shutil.copytree(source, root)
    harm = [kind, *spoil(rng, root, source.with_name("earlier"))]
    limit = rng.choice((1, 2, 3, 10, 50))
    plan = json.loads(json.dumps(PLAN))
    if release != "5.3.3":
        harm.append(f"commitLogRecoverMaxNum={limit}")
        plan["config"]["commitLogRecoverMaxNum"] = limit
    config = MessageStoreConfig(
        mapped_file_size_commit_log=LOG_SIZE,
        commit_log_recover_max_num=limit,
        timer_wheel_enable=False,
        given=frozenset({"mappedFileSizeCommitLog", "commitLogRecoverMaxNum", "storeType"}),
        store_type="defaultRocksDB",
    )

    account, death = peer.Peer(release, tmp_path).start_copy(plan, root)
    if "database none" in harm:
        made_rocksdb.make_database(root / "consumequeue", {"default": {}, "offset": {}})
    try:
        with open_store(root, config) as opened:
            ours = recovery.plan(opened, release[:3])
    except CannotRead:
        assert any(damage in harm for damage in (f"database {damage}" for damage in DAMAGE)), harm
        return

    state = next((row for row in account if row["t"] == "state" and row["when"] == "started"), None)
    assert ours.will_start == (state is not None), f"{harm} {ours.blockers} {death}"
    if state is None:
        return
    assert ours.end_offset == state["maxPhy"], harm
    bounds = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in ours.queues if q.max_offset}
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started" and row["max"]]
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}
    behind = {
        (q.topic, q.queue_id)
        for q in ours.queues
        if ours.exit == "abnormal" and q.final.max_physic > ours.end_offset and not q.topic.startswith(LMQ_PREFIX)
    }
    """Ends that 5.4 and 5.5 cut after a crash only if they come to it before the first rows are written."""
    asked_early = {
        key
        for key, (minimum, _) in theirs.items()
        if minimum == 0 and any((q.topic, q.queue_id) == key and q.created for q in ours.queues)
    }
    """A broker that is asked for a minimum before the first row of a queue is written stores 0 for good."""
    expected = {key: (0, end) if key in asked_early else (minimum, end) for key, (minimum, end) in bounds.items()}
    assert {key: expected.get(key) for key in theirs.keys() - behind} == {
        key: theirs[key] for key in theirs.keys() - behind
    }, harm
    assert bounds.keys() - behind <= theirs.keys(), harm
