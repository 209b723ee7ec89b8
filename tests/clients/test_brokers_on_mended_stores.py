"""An operator mends a damaged store with ``repair``; the real broker of its release starts on it, and real clients read
every queue from offset 0 on, look keys up, and go on with their group: nothing is lost that was there, and nothing is
there that was never sent. What the plan promised is what happens, and ``check`` names only what is lost.

``--clients-full --peer-rounds 10`` with ``PEER_RELEASES=all`` takes ten stores of each release for each repair, and
prints the table (``-s``). ``STORESCOPE_REPAIRS`` names some repairs (``index,checkpoint``), or kinds of damage.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import broker_rounds
import mend_campaign
import mended_stores
import peer
import pytest
import repair_rounds
from broker_rounds import KINDS, BaseStore, Verdict
from mend_campaign import Kind
from store_readings import StoreReader

pytestmark = [pytest.mark.peer, pytest.mark.timeout(7200)]

REPAIRS = (*dict.fromkeys(kind.repair for kind in KINDS if kind.repair), "")
CHOSEN = [name for name in os.environ.get("STORESCOPE_REPAIRS", "").split(",") if name]
FEW = {"5.5.1": ("log files swapped",)}
"""What a run without ``--clients-full`` takes: one start of a broker beside those that make a store."""
TRIES = 6
"""How often a store is damaged anew until its repair has something to do."""
AFTER_LOSS = {"CL15", "CF06"}
"""Findings about placeholders, and offsets in front of what is left."""
AFTER_LOST_END = {"CL06"}
"""The rest of a message that was cut at the end of the log: a broker overwrites it."""


@dataclass
class Round:
    """A damaged store, and what its repair did."""

    base: BaseStore
    kind: Kind
    hits: list[repair_rounds.Hit]
    folder: Path
    store: Path
    verdict: Verdict
    unindexed: range
    """Offsets of messages whose keys the start loses, as ``check`` said before it (apache/rocketmq#4463)."""
    has_told_of_delays: bool
    """The plan said that the start loses the times of delayed messages."""


def config_option(base: BaseStore, work: Path) -> tuple[object, ...]:
    """Return the broker's configuration where nothing else tells the length of an only file of the log."""
    if len(list((base.folder / "commitlog").iterdir())) > 1:
        return ()
    path = work / "broker.conf"
    path.write_text(f"mappedFileSizeCommitLog={base.plan['config']['mappedFileSizeCommitLog']}\n")
    return ("--config", path)


def mend_and_read(base: BaseStore, kind: Kind, release: str, work: Path, reader: StoreReader) -> Round | None:
    """Damage a copy until the repair of this kind acts, mend it, and read it with a real broker; None if no damage made
    it act.
    """
    config = config_option(base, work)
    for attempt in range(TRIES):
        name = f"{base.folder.name} {kind.name} {attempt}"
        rng = random.Random(f"{release} {name}")
        folder = work / name.replace(" ", "-")
        damaged = folder / "damaged"
        shutil.copytree(base.folder, damaged)
        if rng.random() < 0.5:  # the broker that wrote the store seems to have been killed
            (damaged / "abort").touch()
        hits = mend_campaign.planted(kind, rng, damaged)
        lines, store = mended_stores.mend(rng, damaged, folder / "mended", config)
        if kind.repair in [line["name"] for line in lines if line["type"] == "repair"] or not kind.repair:
            break
        shutil.rmtree(folder)
    else:
        return None
    mended = repair_rounds.units_of(store)
    plain = folder / "before-the-start"
    shutil.copytree(store, plain)
    command = {"await": dict(broker_rounds.awaited(base))} if kind.repair == "delay-offsets" else {}
    reading = base.read(reader, store, **command)
    unindexed = keys_lost_by_start(plain, config)
    verdict = broker_rounds.compare(base, reading, mended, hits, unindexed)
    if reading.is_started and not reading.error:
        verdict.wrong += broker_rounds.wrong_groups(base, reading, plain)
        start = (True, reading.line["loadedMaxPhyOffset"])
        verdict.wrong += mended_stores.broken_promises(lines, plain, start, release, config)
    if kind.repair == "delay-offsets" and base.delivered(reading) != base.delivered(base.before):
        lost, again = (
            base.delivered(base.before) - base.delivered(reading),
            base.delivered(reading) - base.delivered(base.before),
        )
        verdict.wrong.append(f"not delivered: {lost}; delivered again: {again}")
    has_told_of_delays = any("delay levels at once" in line.get("costs", "") for line in lines)
    return Round(base, kind, hits, folder, store, verdict, unindexed, has_told_of_delays)


def keys_lost_by_start(store: Path, config: tuple[object, ...]) -> range:
    """Return the offsets of the messages whose keys the next start loses, as ``check`` says."""
    for line in mended_stores.records("check", store, *config)[1]:
        if line["type"] == "finding" and line["id"] == "IX04" and line["severity"] == "warn":
            return range(line["evidence"]["from"], line["evidence"]["to"])
    return range(0)


def is_foretold_gap(line: dict[str, Any], unindexed: range) -> bool:
    """Return True for missing keys of messages of which ``check`` said that the start loses them."""
    if line["id"] != "IX05":
        return False
    return all(line["evidence"][name] in unindexed for name in ("firstUnit", "lastUnit"))


def is_without_delivery_times(line: dict[str, Any]) -> bool:
    """Return True for entries of the delay topic that RocketMQ 4.9 wrote while it recovered: it does not know the
    delay levels then, and the plan of "start-of-dispatch" says so.
    """
    return line["id"] == "CQ09" and str(line["evidence"]["queue"]).startswith(f"{broker_rounds.DELAY_TOPIC}/")


def close_round(done: Round, reader: StoreReader, allowed: set[str]) -> None:
    """Check the store as the broker left it."""
    reader.wait_closed(done.store)
    _, lines = mended_stores.records("check", done.store)
    findings = [line for line in lines if line["type"] == "finding" and line["severity"] in ("warn", "error")]
    if done.has_told_of_delays:
        findings = [line for line in findings if not is_without_delivery_times(line)]
    severe = {line["id"] for line in findings if not is_foretold_gap(line, done.unindexed)}
    if any(hit.stop > done.base.end for hit in done.hits):
        allowed = allowed | AFTER_LOST_END
    if fresh := severe - allowed:
        done.verdict.wrong.append(f"after the broker check finds {sorted(fresh)}")
    if not done.verdict.wrong:  # pytest keeps the stores of a failed test
        shutil.rmtree(done.folder)


@pytest.mark.parametrize(
    "release",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.clients_full) for name in peer.RELEASES],
)
def test_a_broker_serves_all_that_can_be_had(request: pytest.FixtureRequest, tmp_path: Path, release: str) -> None:
    first_seed, rounds = (request.config.getoption(name) for name in ("--peer-seed", "--peer-rounds"))
    is_full = request.config.getoption("--clients-full")
    table = {name: Counter[str]() for name in REPAIRS}
    wrong: list[str] = []

    def finish(done: Round) -> None:
        close_round(done, reader, done.base.usual | mended_stores.NAMES_OF_LOST | AFTER_LOSS)
        counts = table[done.kind.repair]
        counts += done.verdict.counts
        if done.verdict.wrong:
            counts["wrong"] += 1
            wrong.append(f"{release} {done.folder.name}: {done.hits} {done.verdict.wrong[:4]}")
            print(wrong[-1], flush=True)

    with StoreReader(release, tmp_path / "reader") as reader:
        bases = broker_rounds.make_stores(range(first_seed, first_seed + rounds), release, tmp_path, reader)
        open_rounds: deque[Round] = deque()
        for seed, base in enumerate(bases, first_seed):
            for repair in REPAIRS:
                kinds = [kind for kind in KINDS if kind.repair == repair]
                if not is_full:
                    kinds = [kind for kind in kinds if kind.name in FEW[release]]
                elif CHOSEN and repair not in CHOSEN:
                    kinds = [kind for kind in kinds if kind.name in CHOSEN]
                # every kind in turn, so that ten stores see the different damages
                for kind in kinds[seed % len(kinds) :] + kinds[: seed % len(kinds)] if kinds else ():
                    try:
                        done = mend_and_read(base, kind, release, tmp_path, reader)
                    except AssertionError as error:
                        wrong.append(f"{release} {base.folder.name} {kind.name}: {str(error)[-1500:]}")
                        print(wrong[-1], flush=True)
                        break
                    if done is None:
                        table[repair]["left"] += 1
                        continue
                    table[repair]["states"] += 1
                    open_rounds.append(done)
                    break
                while len(open_rounds) > 3:
                    finish(open_rounds.popleft())
        while open_rounds:
            finish(open_rounds.popleft())
    for repair, counts in [(repair, counts) for repair, counts in table.items() if counts]:
        print(release, "|", repair or "none", "|", dict(counts), flush=True)
    assert not wrong
    if not is_full:
        assert sum(counts["states"] for counts in table.values()) == len(FEW[release])
