"""A damaged store is mended by ``repair``; RocketMQ's own broker starts on it, and its Java client reads topics from
the first message on: it gets every message that was not touched, once, and in place of the lost ones nothing (5.x) or
an empty message that says so (4.9).
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path

import mend_campaign
import pytest
import repair_rounds
from consumed_stores import TOPICS, Place, consume, received, served
from mend_campaign import KINDS

from engine.cli.main import main
from engine.codec.filler import LOST
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]

DAMAGES = (
    "zeros in the log",
    "messages and their queue entries",
    "a cut log file",
    "every queue but one file",
    "two kinds at once",
)


def check_consumer(
    monkeypatch: pytest.MonkeyPatch, place: Path, release: str, topics: tuple[str, ...]
) -> tuple[dict[Place, Unit], int]:
    """Count what a client gets from the store in ``place``: each whole message once. Returns the whole messages, and
    the number of placeholders.
    """
    with open_store(place / "store") as store:
        in_log = {
            (unit.topic, unit.queue_id, unit.queue_offset): unit
            for unit in store.units(crc=False)
            if isinstance(unit, Unit) and unit.topic in topics and unit.transaction_type in {0, 8}
        }
    in_queues = served(place / "store", topics)
    assert in_queues.keys() <= in_log.keys()
    messages = in_log | in_queues  # the start fills queues that are lost
    whole = {at: unit for at, unit in messages.items() if not repair_rounds.stands_in(unit)}
    lost = Counter(messages.keys() - whole.keys())
    handed = consume(monkeypatch, place, release, Counter(whole.keys()))
    assert received(handed) - Counter(whole.keys()) == (lost if release.startswith("4.9") else Counter())
    in_place_of_lost = [line for line in handed if LOST in line["properties"]]
    assert len(in_place_of_lost) == (len(lost) if release.startswith("4.9") else 0)
    return whole, len(lost)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("broker-orders-4.9.7", "4.9.7"),
        ("broker-orders", "5.3.3"),
        ("broker-transactions-5.4.0", "5.4.0"),
        ("broker-orders-5.5.1", "5.5.0"),
    ],
)
def test_a_consumer_gets_every_message_that_was_not_touched(
    golden, monkeypatch, tmp_path: Path, name: str, release: str, damage: str
) -> None:
    place = tmp_path / "cluster"
    damaged = Path(shutil.copytree(golden(name), tmp_path / "damaged"))
    before, topics = served(damaged, TOPICS[name]), TOPICS[name]
    units = repair_rounds.units_of(damaged)
    config = tmp_path / "broker.conf"  # the length of an only file that is cut stands nowhere else
    log_file = next((damaged / "commitlog").iterdir())
    config.write_text(f"mappedFileSizeCommitLog={log_file.stat().st_size}\n", "utf-8")
    (damaged / "abort").touch()
    kind = next(kind for kind in KINDS if kind.name == damage)
    hits = mend_campaign.planted(kind, random.Random(f"{name} {damage}"), damaged)
    assert main(["repair", str(damaged), "--config", str(config), "--plan", "--quiet"]) == 0
    assert main(["repair", str(damaged), "--config", str(config), "--to", str(place / "store"), "--quiet"]) == 0
    if not (place / "store").exists():  # nothing of it keeps a start from anything
        shutil.copytree(damaged, place / "store")
    assert repair_rounds.wrongs(units, repair_rounds.units_of(place / "store"), hits) == []
    whole, lost_count = check_consumer(monkeypatch, place, release, topics)
    untouched = {at: unit for at, unit in before.items() if not any(hit.touches(unit) for hit in hits)}
    assert {at: whole.get(at) for at in untouched} == untouched
    assert whole.keys() <= before.keys()
    print(release, "|", damage, "|", len(before), len(untouched), len(whole), lost_count, flush=True)


def test_a_consumer_reads_behind_a_lost_file_without_queues(golden, monkeypatch, tmp_path: Path) -> None:
    name, place = "broker-orders-5.5.1", tmp_path / "cluster"
    damaged = Path(shutil.copytree(golden(name), tmp_path / "damaged"))
    units = repair_rounds.units_of(damaged)
    hits = repair_rounds.damage_files(random.Random(1), damaged, "lost, and all queues")
    (damaged / "abort").touch()
    assert main(["repair", str(damaged), "--to", str(place / "store"), "--quiet"]) == 0
    after = repair_rounds.units_of(place / "store")
    assert repair_rounds.wrongs(units, after, hits) == []
    in_queues = {
        (unit.topic, unit.queue_id, unit.queue_offset): unit
        for unit in after.values()
        if unit.topic in TOPICS[name] and unit.transaction_type in (0, 8)
    }
    whole = {at: unit for at, unit in in_queues.items() if not repair_rounds.stands_in(unit)}
    assert in_queues.keys() - whole.keys()
    assert received(consume(monkeypatch, place, "5.5.0", Counter(whole.keys()))) == Counter(whole.keys())


def damage_table(root: Path, damage: str) -> None:
    """Damage the tables in ``config/`` in a way that a repair is made for."""
    config = root / "config"
    match damage:
        case "text behind the end":
            with (config / "topics.json").open("ab") as file:
                file.write(b'0}}\n"')
            (config / "topics.json.bak").unlink(missing_ok=True)
        case "no topics":
            for name in ("topics.json", "topics.json.bak"):
                (config / name).unlink(missing_ok=True)
        case "an offset ahead":
            for name in ("consumerOffset.json", "consumerOffset.json.bak"):
                head, word, rows = (config / name).read_text("utf-8").partition('"offsetTable"')
                rows = re.sub(r":(\d+)([,\s}])", r":9\g<1>000\2", rows, count=1)
                (config / name).write_text(head + word + rows, "utf-8")


@pytest.mark.parametrize(("name", "release"), [("broker-orders-4.9.7", "4.9.7"), ("broker-orders-5.5.1", "5.5.0")])
@pytest.mark.parametrize("damage", ["text behind the end", "no topics", "an offset ahead"])
def test_a_consumer_reads_everything_after_a_table_was_mended(
    golden, monkeypatch, tmp_path: Path, name: str, release: str, damage: str
) -> None:
    place = tmp_path / "cluster"
    damaged = Path(shutil.copytree(golden(name), tmp_path / "damaged"))
    before = served(damaged, TOPICS[name])
    damage_table(damaged, damage)
    assert main(["repair", str(damaged), "--to", str(place / "store"), "--quiet"]) == 0
    whole, lost_count = check_consumer(monkeypatch, place, release, TOPICS[name])
    assert (whole, lost_count) == (before, 0)
