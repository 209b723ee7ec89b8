"""An operator mends a damaged store with ``repair``; the real store opens it, and a consumer reads every queue from
offset 0 on: it gets each message that was not touched, at its offset and with its bytes, and nothing that was never
sent. What the plan promised is what happens.

``--full-form --peer-rounds 10`` with ``PEER_RELEASES=all`` takes ten stores of each release, damages each in every way
of :mod:`mend_campaign`, and prints the table (``-s``).
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import mend_campaign
import peer
import pytest
import repair_rounds
from mend_campaign import KINDS
from mended_stores import broken_promises, mend

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(7200)]

FEW = {"5.5.1": ("messages and their queue entries",), "4.9.8": ("a cut log file",)}


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_consumer_gets_all_that_can_be_had(request: pytest.FixtureRequest, tmp_path: Path, release: str) -> None:
    first_seed, rounds = (request.config.getoption(name) for name in ("--peer-seed", "--peer-rounds"))
    partner = peer.Peer(release, tmp_path)
    table: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    kinds = [kind for kind in KINDS if rounds > 1 or kind.name in FEW.get(release, ())]
    for seed in range(first_seed, first_seed + rounds):
        store, plan = tmp_path / f"store-{seed}", mend_campaign.shape(seed, release)
        if rounds == 1:
            plan |= {"count": 150, "pauseEvery": 0}
        partner.write(plan, store)
        before = mend_campaign.served(partner.consume(plan, store, 0))
        units = repair_rounds.units_of(store)
        config: tuple[object, ...] = ()
        if (
            len(list((store / "commitlog").iterdir())) == 1
        ):  # of an only file the broker's configuration tells the length
            conf = tmp_path / "broker.conf"
            conf.write_text(f"mappedFileSizeCommitLog={plan['config']['mappedFileSizeCommitLog']}\n")
            config = ("--config", conf)
        for kind in kinds:
            rng = random.Random(f"mend {release} {kind.name} {seed}")
            damaged, copy = tmp_path / "damaged", tmp_path / "mended"
            shutil.copytree(store, damaged)
            if rng.random() < 0.5:
                (damaged / "abort").touch()
            hits = mend_campaign.planted(kind, rng, damaged)
            counts = table.setdefault(kind.name, Counter())
            counts["stores"] += 1
            try:
                lines, mended = mend(rng, damaged, copy, config)
                names = [line["name"] for line in lines if line["type"] == "repair"]
                counts["mended"] += bool(names)
                counts[f"by {kind.repair}"] += kind.repair in names
                asked = [
                    [unit.topic, key]
                    for unit in units.values()
                    if any(hit.touches(unit) for hit in hits)
                    for key in unit.properties.get("KEYS", "").split()
                ]
                after = mend_campaign.served(partner.consume({**plan, "askedKeys": asked[:30]}, mended, 10))
                outcome = mend_campaign.compare(before, after, units, hits)
                outcome.wrong += broken_promises(lines, mended, (after.is_loaded, after.loaded_end), release, config)
            except AssertionError as error:
                outcome = mend_campaign.Outcome(wrong=[str(error)[-1500:]])
            counts += outcome.counts
            if outcome.wrong:
                counts["wrong"] += 1
                wrong.append(f"{release} seed {seed} {kind.name}: {hits} {outcome.wrong[:4]} ({len(outcome.wrong)})")
                print(wrong[-1], flush=True)
            shutil.rmtree(damaged)
            shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(store)
    for kind in kinds:
        print(release, "|", kind.name, "|", dict(table[kind.name]), flush=True)
    assert not wrong
