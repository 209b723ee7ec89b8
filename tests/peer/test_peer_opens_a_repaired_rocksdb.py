"""The real RocketMQ opens a store with its queues in a RocksDB whose rows, files or log were damaged and mended by
``repair``: every message that was not touched is there, at its physical offset and its queue offset, and nothing else.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import made_rocksdb
import peer
import pytest
import repair_rounds

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

RELEASES = ("5.5.1", "5.4.0", "5.3.3")
FILES = ("missing table", "broken table", "no manifest", "no current file", "damaged log")
KINDS = (*made_rocksdb.SPOILED, *FILES)
SHORT = {"5.5.1": ("missing rows", "damaged log", "broken table"), "5.4.0": ("no end",), "5.3.3": ("missing table",)}
"""What is tried where nobody asks for more; ``--peer-rounds`` of 2 or more tries all of each release."""
PLAN = {**peer.ROCKSDB_PLAN, "seed": 7, "count": 500}


def pytest_generate_tests(metafunc):
    rounds = metafunc.config.getoption("--peer-rounds")
    cases = [(release, kind) for release in RELEASES for kind in (SHORT[release] if rounds == 1 else KINDS)]
    metafunc.parametrize(("release", "kind"), cases)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """``stores(release)``: a store that the release wrote, and what it says about it."""
    made_rocksdb.binding()
    made: dict[str, tuple[Path, dict[str, dict]]] = {}

    def store_of(release: str) -> tuple[Path, dict[str, dict]]:
        if release not in made:
            work = tmp_path_factory.mktemp(release)
            peer.Peer(release, work).write(PLAN, work / "store")
            made[release] = work / "store", peer.Peer(release, work).account(PLAN, work / "store")
        return made[release]

    return store_of


def damage(rng: random.Random, root: Path, kind: str) -> list[repair_rounds.Hit]:
    """Damage a store; returns the places of the log that were overwritten."""
    folder = root / "consumequeue"
    tables = sorted(folder.glob("*.sst"))
    match kind:
        case "missing table":
            rng.choice(tables).unlink()
        case "broken table":
            for table in tables:
                data = bytearray(table.read_bytes())
                data[20:60] = bytes(40)
                table.write_bytes(data)
        case "no manifest":
            next(folder.glob("MANIFEST-*")).unlink()
        case "no current file":
            (folder / "CURRENT").unlink()
        case "damaged log":
            (root / "abort").touch()
            return repair_rounds.damage_log(rng, root)
        case _:
            made_rocksdb.spoil_queues(folder, kind, "TopicA", 1)
    return []


def test_the_real_store_has_every_message_that_was_not_touched(stores, tmp_path: Path, release: str, kind: str) -> None:
    root, untouched = stores(release)
    before = repair_rounds.units_of(root)
    damaged, mended = tmp_path / "damaged", tmp_path / "mended"
    shutil.copytree(root, damaged)
    hits = damage(random.Random(f"{release} {kind}"), damaged, kind)
    assert main(["repair", str(damaged), "--to", str(mended), "--quiet", "--release", release[:3]]) == 0
    repaired = peer.Peer(release, tmp_path).account(PLAN, mended)
    touched = {offset for offset, unit in before.items() if any(hit.touches(unit) for hit in hits)}
    whole = {offset: row for offset, row in untouched["messages"].items() if offset not in touched}
    assert {offset: repaired["messages"].get(offset) for offset in whole} == whole, hits
    assert not repaired["messages"].keys() - untouched["messages"].keys() - touched, hits
    assert repaired["entries"] == untouched["entries"], hits
    assert repaired["bounds"] == untouched["bounds"], hits
