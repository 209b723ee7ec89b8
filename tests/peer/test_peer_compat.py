"""``compat`` and real starts: fresh stores of each release and storage mode, started by other releases in other modes.

The states are what stops, crashes, disks and hands leave behind. Without more a few are started; ``--peer-rounds N``
starts ten a seed for each release, so ``--peer-rounds 25`` is 1,000 states.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import peer
import pytest

from engine.codec.message import COMMIT, Unit
from engine.config import MessageStoreConfig
from engine.inspection.compatibility import CompatOptions, compare
from engine.inspection.snapshot import open_store
from engine.rules.compatibility import MODES

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

SHORT = {"5.5.1": 5, "5.4.0": 0, "5.3.3": 0, "4.9.8": 2}
"""How many states each release starts where nobody asks for more."""
COPIES = 10
LOG_SIZE, SMALL_LOG_SIZE = 65_536, 16_384
TARGET_MODES = {
    "5.5.1": ("files", "files", "combined", "rocksdb"),
    "5.4.0": ("files", "files", "combined", "rocksdb"),
    "5.3.3": ("files", "files", "combined", "rocksdb"),
    "4.9.8": ("files",),
}
WRITERS = ("5.5.1", "5.5.1", "5.4.0", "5.3.3", "4.9.8")
SHORT_WRITERS = ("5.5.1", "4.9.8")
ENDS = ("clean", "clean", "now", "dispatched", "flushed")
PLAN = {
    "topics": [{"name": "TopicA", "queues": 3}, {"name": "TopicB", "queues": 2}, {"name": "seldom", "queues": 1}],
    "body": {"min": 0, "max": 400},
    "tags": ["TagA", "TagB"],
    "halfEvery": 31,
    "endHalfEvery": 43,
    "delayEvery": 57,
    "delayLevels": [3, 16],
}
SETTINGS = {
    "rocksdb": {"storeType": "defaultRocksDB"},
    "combined": {"rocksdbCQDoubleWriteEnable": True},
    "files": {},
}


def settings_of(mode, release):
    """Return the settings with which a broker of ``release`` has the storage mode."""
    light = {"combineCQUseRocksdbForLmq": True} if mode == "combined" and release.startswith("5.5") else {}
    return SETTINGS[mode] | light


def sizes(log_size):
    return {
        "mappedFileSizeCommitLog": log_size,
        "mappedFileSizeConsumeQueue": 6000,
        "maxHashSlotNum": 100,
        "maxIndexNum": 400,
    }


def pytest_generate_tests(metafunc):
    first = metafunc.config.getoption("--peer-seed") * COPIES
    rounds = metafunc.config.getoption("--peer-rounds")
    counts = SHORT if rounds == 1 else dict.fromkeys(SHORT, rounds * COPIES)
    cases = [(release, seed) for release, count in counts.items() for seed in range(first, first + count)]
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize(("release", "seed"), cases)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """``stores(writer, mode, log_size, end)``: a store that this release wrote in two sessions; the second one ended
    cleanly or with a crash.
    """
    written: dict[tuple[object, ...], Path] = {}

    def store_of(writer: str, mode: str, log_size: int, end: str) -> Path:
        key = (writer, mode, log_size, end)
        if key not in written:
            work = tmp_path_factory.mktemp(f"{mode}-{end}-{writer}")
            partner = peer.Peer(writer, work)
            plan = {**PLAN, "config": {**sizes(log_size), **settings_of(mode, writer)}}
            partner.write({**plan, "seed": 7, "count": 250}, work / "store")
            second = {**plan, "seed": 8, "count": 400, "uniqStart": 20_000}
            if end != "clean":
                second |= {"crash": end, "crashAfter": 370, "flushAt": 150}
            partner.write(second, work / "store")
            written[key] = work / "store"
        return written[key]

    return store_of


def spoil(rng: random.Random, root: Path, log_size: int) -> tuple[list[str], int]:
    """Do to a store what crashes, disks and hands do to it; return what it was, and the first damaged byte of the
    log.
    """
    harm = []
    files = sorted((root / "commitlog").iterdir())
    data = b"".join(file.read_bytes() for file in files)
    end = len(data.rstrip(b"\0"))
    kind = rng.choice(("none", "none", "torn", "zero tail", "flipped"))
    place = rng.randrange(max(end - log_size, 0), end)
    intact_end = end
    if kind in {"torn", "zero tail"}:
        place = end - rng.randrange(1, 300) if kind == "torn" else place
        for number, file in enumerate(files):
            with file.open("r+b") as log:
                keep = min(max(place - number * log_size, 0), log_size)
                log.seek(keep)
                log.write(bytes(log_size - keep))
        harm.append(f"log zero from {place}")
        intact_end = place
    elif kind == "flipped":
        with files[place // log_size].open("r+b") as log:
            log.seek(place % log_size)
            log.write(bytes([data[place] ^ 0xFF]))
        harm.append(f"byte {place} flipped")
        intact_end = place
    if rng.random() < 0.25:
        (root / "checkpoint").unlink(missing_ok=True)
        harm.append("no checkpoint")
    if rng.random() < 0.25:
        folders = [folder for folder in (root / "consumequeue").iterdir() if folder.is_dir()]
        gone = rng.choice((folders, folders[:1]))
        for folder in gone:
            shutil.rmtree(folder)
        harm.append(f"queues gone: {len(gone)} of {len(folders)}")
    if rng.random() < 0.25:
        if (root / "abort").exists():
            (root / "abort").unlink()
        else:
            (root / "abort").write_text("4711")
        harm.append("abort turned over")
    return harm, intact_end


def count_dispatched_units(root: Path, config: MessageStoreConfig, end: int) -> int:
    """Number of units in front of ``end`` that belong into a queue."""
    with open_store(root, config) as store:
        units = (item for item in store.units() if isinstance(item, Unit) and item.offset < end)
        return sum(unit.transaction_type in {0, COMMIT} for unit in units)


def test_a_start_in_a_mode_does_what_compat_says(release, seed, stores, tmp_path, request):
    rng = random.Random(f"compat {seed}")
    is_short = request.config.getoption("--peer-rounds") == 1
    writer = rng.choice(SHORT_WRITERS if is_short else WRITERS)
    store_mode = rng.choice(TARGET_MODES[writer])
    log_size = rng.choice((LOG_SIZE, SMALL_LOG_SIZE))
    end = rng.choice(ENDS)
    mode = rng.choice(TARGET_MODES[release])
    root = tmp_path / "store"
    shutil.copytree(stores(writer, store_mode, log_size, end), root)
    topics = {topic["name"]: {"topicName": topic["name"]} for topic in PLAN["topics"]}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    harm, intact_end = spoil(rng, root, log_size)
    state = [f"{writer} {store_mode} {log_size} {end} -> {release} {mode}", *harm]
    given_sizes = sizes(log_size)
    config = MessageStoreConfig(
        mapped_file_size_commit_log=log_size,
        mapped_file_size_consume_queue=6000,
        max_hash_slot_num=100,
        max_index_num=400,
        timer_wheel_enable=False,
        given=frozenset(given_sizes),
    )

    with_settings = {**PLAN, "config": {**given_sizes, **settings_of(mode, release)}}
    account, death = peer.Peer(release, tmp_path).start_copy(json.loads(json.dumps(with_settings)), root)
    (answer,) = compare(lambda: open_store(root, config), CompatOptions(((release[:3], MODES[mode]),)))

    started = next((row for row in account if row["t"] == "state" and row["when"] == "started"), None)
    assert answer.starts == (started is not None), f"{state} {answer.message} {death}"
    if started is None:
        return
    assert answer.plan.end_offset == started["maxPhy"], state
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started" and row["max"]]
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}
    ours = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in answer.plan.queues if q.max_offset}
    if mode == "rocksdb":
        ours |= {key: (0, ours[key][1]) for key in theirs.keys() & ours.keys() if theirs[key][0] == 0}
    lost = sum(topic.not_dispatched for topic in answer.topics)
    if mode == "combined" and lost:  # for the RocksDB a start may look further back and dispatch more
        assert answer.unknown
        assert all(end <= theirs.get(key, (0, 0))[1] for key, (_, end) in ours.items()), state
        return
    assert ours == theirs, state
    has_bad_units = answer.plan.end_offset > intact_end  # they may have entries
    has_filled_entries = release.startswith("4.9")  # its minimum stays in front of entries that lead nowhere
    if not (answer.plan.misnumbered or has_bad_units or has_filled_entries or mode == "rocksdb"):
        held = sum(maximum - minimum for minimum, maximum in theirs.values())
        assert count_dispatched_units(root, config, started["maxPhy"]) - held == lost, state
