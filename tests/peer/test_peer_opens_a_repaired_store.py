"""The real RocketMQ opens a store whose log or queues were damaged and mended by ``repair``: every message that was not
touched is there, at its physical offset and its queue offset, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import golden_stores
import peer
import pytest
import repair_rounds

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

STORES = {"4.9.8": "clean-4.9.8", "5.3.3": "clean-5.3.3", "5.4.0": "crash-5.4.0", "5.5.1": "clean-5.5.1"}


class Rounds:
    """Rounds of damage to copies of one store, and what the real store reads in the store itself and in a mended
    copy. ``seeds`` has ``count`` rounds for each that the options ask for.
    """

    def __init__(
        self, source: Path, request: pytest.FixtureRequest, folder: Path, release: str, count: int = 1
    ) -> None:
        self._source, self._folder, self._release = source, folder, release
        self._plan = plan_of(STORES[release])
        first_seed, rounds = (request.config.getoption(name) for name in ("--peer-seed", "--peer-rounds"))
        self.seeds = range(first_seed, first_seed + count * rounds)
        self.untouched = peer.Peer(release, folder).account(self._plan, source)
        self._units = repair_rounds.units_of(source)

    @contextlib.contextmanager
    def copies(self, seed: int) -> Iterator[tuple[Path, Path]]:
        """Yield a copy to damage, and the path of a mended one; both are removed after the block."""
        damaged, mended = self._folder / f"damaged-{seed}", self._folder / f"mended-{seed}"
        shutil.copytree(self._source, damaged)
        yield damaged, mended
        shutil.rmtree(damaged)
        shutil.rmtree(mended, ignore_errors=True)

    def read(self, store: Path, hits: list, words: tuple) -> tuple[dict[str, dict], set[int]]:
        """Return what the real store reads, and the offsets of units that were hit. All others must be there."""
        repaired = peer.Peer(self._release, self._folder).account(self._plan, store)
        touched = {offset for offset, unit in self._units.items() if any(hit.touches(unit) for hit in hits)}
        whole = {offset: row for offset, row in self.untouched["messages"].items() if offset not in touched}
        assert {offset: repaired["messages"].get(offset) for offset in whole} == whole, words
        return repaired, touched


def plan_of(name: str) -> dict:
    plan: dict = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    return plan


@pytest.mark.parametrize("release", peer.RELEASES)
def test_the_real_store_has_every_message_that_was_not_touched(
    golden, request: pytest.FixtureRequest, tmp_path: Path, release: str
) -> None:
    rounds = Rounds(golden(STORES[release]), request, tmp_path, release, 2)
    mended = 0
    for seed in rounds.seeds:
        with rounds.copies(seed) as (damaged, copy):
            rng = random.Random(f"{release} {seed}")
            hits = repair_rounds.damage_log(rng, damaged) if seed % 2 == 0 else []
            if not hits:
                repair_rounds.damage_queues(rng, damaged)
            if rng.random() < 0.5:
                (damaged / "abort").touch()
            fingerprint = golden_stores.fingerprint(damaged)
            assert main(["repair", str(damaged), "--to", str(copy), "--quiet"]) == 0
            assert golden_stores.changes(fingerprint, golden_stores.fingerprint(damaged)) == []
            mended += copy.exists()  # there is none if nothing of the damage matters at a start
            words = (seed, hits)
            repaired, touched = rounds.read(copy if copy.exists() else damaged, hits, words)
            assert not repaired["messages"].keys() - rounds.untouched["messages"].keys() - touched, words
            assert repaired["entries"] == rounds.untouched["entries"], words
            assert repaired["bounds"] == rounds.untouched["bounds"], words
    assert mended


@pytest.mark.parametrize("release", peer.RELEASES)
def test_the_real_store_starts_with_files_that_were_cut_lost_renamed_or_overwritten(
    golden, request: pytest.FixtureRequest, tmp_path: Path, release: str
) -> None:
    """One kind of damage a round; each message that was not touched keeps its bytes, its queue and its queue offset."""
    rounds = Rounds(golden(STORES[release]), request, tmp_path, release)
    first_kind = peer.RELEASES.index(release)  # with one round each release has another kind
    for seed in rounds.seeds:
        with rounds.copies(seed) as (damaged, copy):
            kind = repair_rounds.FILE_DAMAGE[(seed + first_kind) % len(repair_rounds.FILE_DAMAGE)]
            rng = random.Random(f"{release} {kind} {seed}")
            (damaged / "abort").unlink(missing_ok=True)
            if rng.random() < 0.5:
                (damaged / "abort").touch()
            hits = repair_rounds.damage_files(rng, damaged, kind)
            assert main(["repair", str(damaged), "--to", str(copy), "--quiet", "--release", release[:3]]) == 0
            words = (kind, seed, hits)
            repaired, touched = rounds.read(copy if copy.exists() else damaged, hits, words)
            entries = {place: entry for place, entry in rounds.untouched["entries"].items() if entry[0] not in touched}
            assert {place: repaired["entries"].get(place) for place in entries} == entries, words
            if kind != "last file cut":
                assert repaired["bounds"] == rounds.untouched["bounds"], words


@pytest.mark.parametrize("release", peer.RELEASES)
def test_the_real_store_reads_on_behind_a_replaced_file(golden, tmp_path: Path, release: str) -> None:
    """Without the file and the queues 4.9 waits forever, and later releases number the messages behind it anew."""
    name, start, end = "late-queue-flush-5.5.1", 1 << 20, (1 << 20) + (1 << 19)
    before = repair_rounds.units_of(golden(name))
    damaged, copy = tmp_path / "damaged", tmp_path / "mended"
    shutil.copytree(golden(name), damaged)
    (damaged / "commitlog" / f"{start:020d}").unlink()
    shutil.rmtree(damaged / "consumequeue")
    shutil.rmtree(damaged / "index")  # queries by the keys of the lost messages would find no message there
    (damaged / "abort").unlink()
    assert main(["repair", str(damaged), "--to", str(copy), "--quiet", "--release", release[:3]]) == 0
    repaired = peer.Peer(release, tmp_path).account(plan_of(name), copy)
    kept = {offset for offset in before if not start <= offset < end}
    assert kept <= repaired["messages"].keys()
    behind = {
        (unit.topic, unit.queue_id, unit.queue_offset): (unit.offset, unit.size)
        for unit in before.values()
        if unit.offset >= end and unit.transaction_type in (0, 8)
    }
    assert len(behind) > 100
    assert {place: repaired["entries"].get(place) for place in behind} == behind


def test_the_real_store_has_no_entry_for_a_file_of_zeros(golden, tmp_path: Path) -> None:
    """A start takes the first 20 bytes of a queue file of zeros for an entry. Brokers of 5.4.0 and 5.5.1 never answered
    the pull of it.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.5.1"), store)
    file = store / "consumequeue/TopicA/9" / f"{0:020d}"
    file.parent.mkdir()
    file.write_bytes(bytes(next(store.glob("consumequeue/TopicA/0/*")).stat().st_size))
    partner = peer.Peer("5.5.1", tmp_path)

    def end_of_queue() -> int:
        rows, death = partner.start_copy(plan_of("clean-5.5.1"), store)
        assert not death
        ends = [row["max"] for row in rows if row["t"] == "queue" and (row["topic"], row["queue"]) == ("TopicA", 9)]
        return ends[-1] if ends else 0

    assert end_of_queue() == 1
    assert main(["repair", str(store), "--apply", "--yes", "--quiet"]) == 0
    assert end_of_queue() == 0
