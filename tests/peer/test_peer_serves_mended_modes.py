"""Stores with special queues are damaged and mended with ``repair``; the real store opens them, and a consumer reads
every queue from offset 0 on: it gets each message that was not touched, in its place, and nothing else but what holds
the place of a lost one.

``--full-form --peer-rounds 10`` with ``PEER_RELEASES=all`` takes ten stores of each mode and release, damages each in
every way of :mod:`mode_campaign`, and prints the table (``-s``).
"""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections import Counter
from pathlib import Path

import made_rocksdb
import mode_campaign
import peer
import pytest
import repair_rounds
import timer_campaign
from mended_stores import mend, records
from mode_campaign import MODES

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(14_400)]

FEW = {("ext", "5.5.1"): "all special queues lost"}
"""What is tried where nobody asks for more."""
CASES = [(mode, release) for mode, releases in MODES.items() for release in releases if release in peer.RELEASES]
NAMES_OF_LOST = {"CL02", "CL04", "CL11", "CL15"}


def configuration(plan: dict, folder: Path) -> Path:
    """Write the settings of the plan as a broker's configuration."""
    path = folder / "broker.conf"
    path.write_text("".join(f"{key}={value}\n" for key, value in plan["config"].items()), "utf-8")
    return path


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("mode", "release"), CASES)
def test_a_consumer_gets_all_that_can_be_had(
    request: pytest.FixtureRequest, tmp_path: Path, mode: str, release: str
) -> None:
    first_seed, rounds = (request.config.getoption(name) for name in ("--peer-seed", "--peer-rounds"))
    if mode == "rocksdb":
        made_rocksdb.binding()
    partner = peer.Peer(release, tmp_path)
    table: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for seed in range(first_seed, first_seed + rounds):
        store, plan = tmp_path / f"store-{seed}", mode_campaign.shape(mode, seed, release, is_short=rounds == 1)
        partner.write(with_own_port(mode_campaign.while_written(mode, plan)), store)
        mode_campaign.finish_compaction(store)
        mode_campaign.write_topics(store, plan)
        before = {False: mode_campaign.served(partner.consume(with_own_port(plan), store, 0))}
        assert before[False].is_loaded
        units = repair_rounds.units_of(store)
        config = ("--config", configuration(plan, tmp_path))
        for kind in mode_campaign.kinds_of(mode):
            if rounds == 1 and kind.name != FEW.get((mode, release), kind.name):
                continue
            rng = random.Random(f"mend {release} {kind.name} {seed}")
            damaged, copy = tmp_path / "damaged", tmp_path / "mended"
            shutil.copytree(store, damaged)
            is_killed = rng.random() < 0.5
            if is_killed:
                (damaged / "abort").touch()
                if mode == "dledger" and True not in before:  # the start cuts the newest entries of a killed broker
                    before[True] = mode_campaign.served(partner.consume(with_own_port(plan), damaged, 0))
            hits = mode_campaign.planted(kind, rng, damaged)
            counts = table.setdefault(kind.name, Counter())
            if hits is not None:
                counts["states"] += 1
                try:
                    lines, mended = mend(rng, damaged, copy, config)
                    counts["mended"] += any(line["type"] == "repair" for line in lines)
                    after = mode_campaign.served(partner.consume(with_own_port(plan), mended, 0))
                    untouched = before.get(is_killed, before[False])
                    if mode == "compacted":
                        more, errors = mode_campaign.compare_compacted(untouched, after, units)
                    else:
                        more, errors = mode_campaign.compare(untouched, after, units, hits)
                    errors += unplanned(lines, mended, config)
                    counts += more
                except AssertionError as error:
                    errors = [str(error)[-1500:]]
                if errors:
                    counts["wrong"] += 1
                    wrong.append(f"{mode} {release} seed {seed} {kind.name}: {hits} {errors[:4]} ({len(errors)})")
                    print(wrong[-1], flush=True)
            shutil.rmtree(damaged)
            shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(store)
    for name, counts in table.items():
        print(mode, release, "|", name, "|", dict(counts), flush=True)
    assert not wrong


@pytest.mark.full_form
@pytest.mark.parametrize("release", [release for release in MODES["compacted"] if release in peer.RELEASES])
def test_each_timer_is_delivered_once(request: pytest.FixtureRequest, tmp_path: Path, release: str) -> None:
    """The timer of the real store goes on: it delivers what is overdue, nothing twice, and keeps what is not due."""
    first_seed, rounds = (request.config.getoption(name) for name in ("--peer-seed", "--peer-rounds"))
    partner = peer.Peer(release, tmp_path)
    table: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for seed in range(first_seed, first_seed + rounds):
        store, plan = tmp_path / f"store-{seed}", timer_campaign.shape(seed)
        partner.write(plan, store)
        config = ("--config", configuration(plan, tmp_path))
        plan["servicesUntil"] += timer_campaign.OVERDUE_MS
        undamaged = timer_campaign.deliveries(partner.consume(plan, store, 0))
        repeated = {key for key, count in undamaged.items() if count > 1}
        for name, plant in timer_campaign.KINDS.items():
            rng = random.Random(f"timers {release} {name} {seed}")
            damaged, copy = tmp_path / "damaged", tmp_path / "mended"
            shutil.copytree(store, damaged)
            if rng.random() < 0.5:
                (damaged / "abort").touch()
            plant(rng, damaged)
            lines, mended = mend(rng, damaged, copy, config)
            counts = table.setdefault(name, Counter())
            counts["states"] += 1
            counts["mended"] += any(line["type"] == "repair" for line in lines)
            lost = timer_campaign.far_keys(plan) - timer_campaign.waiting_in_log(mended) if counts["mended"] else set()
            try:
                until = max(plan["servicesUntil"], int(time.time() * 1000) + 3000)
                rows = partner.consume({**plan, "servicesUntil": until}, mended, 0)
                errors = timer_campaign.disagreements(plan, rows, repeated) + unplanned(lines, mended, config)
            except AssertionError as error:
                errors = [str(error)[-1500:]]
            errors += [f"nothing waits for {sorted(lost)[:5]}"] if lost else []
            counts["delivered"] += len(timer_campaign.due_keys(plan))
            if errors:
                counts["wrong"] += 1
                wrong.append(f"timers {release} seed {seed} {name}: {errors[:4]} ({len(errors)})")
                print(wrong[-1], flush=True)
            shutil.rmtree(damaged)
            shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(store)
    for name, counts in table.items():
        print("timers", release, "|", name, "|", dict(counts), flush=True)
    assert not wrong


def with_own_port(plan: dict) -> dict:
    """Return the plan with a free port for a DLedger log: a store that was looked at keeps its port for a while."""
    if "dLegerGroup" not in plan["config"]:
        return plan
    with socket.create_server(("127.0.0.1", 0)) as server:
        peers = f"n0-127.0.0.1:{server.getsockname()[1]}"
    return {**plan, "config": {**plan["config"], "dLegerPeers": peers}}


def unplanned(lines: list[dict], mended: Path, config: tuple[object, ...]) -> list[str]:
    """Return what check finds in the mended store and the plan did not say."""
    planned = next(line for line in lines if line["type"] == "repairPlan")["after"]["findings"]
    _, answers = records("check", mended, *config)
    findings = [line["id"] for line in answers if line["type"] == "finding" and line["severity"] in ("warn", "error")]
    return [f"check finds {sorted(findings)}, planned {sorted(planned)}"] if sorted(findings) != sorted(planned) else []
