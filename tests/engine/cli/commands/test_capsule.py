"""A capsule answers as its store does, is small, and is never written."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from capsule_answers import answer, differences
from handmade_stores import healthy
from writing_commands import WRITERS

from engine.bench import data
from engine.bench.data import log_store
from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection import open_store

SHORT_GOLDEN = ("batchcq-5.3.3",)
SHORT_BROKEN = ("AB02", "CL11", "DL05")
EVERY_GOLDEN = {path.parent.name for path in golden_stores.GOLDEN.glob("*/store.tar.xz")}
OTHER_GOLDEN = sorted(EVERY_GOLDEN.difference(SHORT_GOLDEN))
OTHER_BROKEN = sorted(BROKEN.keys() - set(SHORT_BROKEN))


@pytest.fixture
def store(tmp_path):
    return healthy().write(tmp_path / "store")


@pytest.mark.golden
@pytest.mark.parametrize("name", SHORT_GOLDEN)
def test_the_capsule_of_a_real_store_answers_as_the_store(name, golden, tmp_path):
    assert differences(golden(name), tmp_path / "made") == []


@pytest.mark.golden
@pytest.mark.full_form
@pytest.mark.parametrize("name", OTHER_GOLDEN)
def test_the_capsule_of_every_real_store_answers_as_the_store(name, golden, tmp_path):
    assert differences(golden(name), tmp_path / "made", 4, 4) == []


@pytest.mark.parametrize("rule", SHORT_BROKEN)
def test_the_capsule_of_a_damaged_store_answers_as_the_store(rule, tmp_path):
    assert differences_of_broken(rule, tmp_path) == []


@pytest.mark.full_form
@pytest.mark.parametrize("rule", OTHER_BROKEN)
def test_the_capsule_of_every_damaged_store_answers_as_the_store(rule, tmp_path):
    assert differences_of_broken(rule, tmp_path) == []


def differences_of_broken(rule: str, folder: Path) -> list[str]:
    handmade = healthy()
    root = handmade.write(folder / "store")
    BROKEN[rule](root, handmade)
    return differences(root, folder / "made")


def test_no_body_is_in_a_capsule(store, tmp_path, capsys):
    capsule = tmp_path / "x.capsule"
    main(["capsule", str(store), "-o", str(capsule)])
    with open_store(store) as opened, open_store(capsule) as of_capsule:
        pairs = list(zip(opened.units(), of_capsule.units(), strict=True))
    bodies = [(item.body, other.body) for item, other in pairs if len(getattr(item, "body", b"")) > 4]
    assert bodies
    assert all(body != other and len(body) == len(other) for body, other in bodies)
    capsys.readouterr()
    assert main(["units", str(capsule), "--json", "--body", "--limit", "1"]) == 0
    assert '"bodySha256":null' in capsys.readouterr().out
    assert main(["units", str(capsule), "--where", "body matches /x/"]) == 2
    assert "a capsule has no bodies" in capsys.readouterr().err


@pytest.mark.golden
def test_masked_parts_are_not_in_the_capsule_and_are_unread(golden, tmp_path, capsys):
    store, capsule = golden("broker-transactions-5.4.0"), tmp_path / "x.capsule"
    assert main(["capsule", str(store), "-o", str(capsule), "--mask", "keys,hosts,tables"]) == 0
    with open_store(store) as opened, open_store(capsule) as of_capsule:
        units = [item for item in opened.units() if isinstance(item, Unit)]
        masked = [item for item in of_capsule.units() if isinstance(item, Unit)]
        disk = of_capsule.capsule
        assert disk is not None
        stored = b"".join(disk._capsule.unpacked(b) for blocks in disk._capsule.blocks for b in blocks if b.stored)
    keys = {key.encode() for unit in units for key in unit.keys if len(key) > 5}
    assert keys
    assert not [key for key in keys if key in stored]
    assert [unit.topic for unit in masked] == [unit.topic for unit in units]
    assert [unit.crc for unit in masked] == [unit.crc for unit in units]
    assert not {unit.store_host.partition(":")[0] for unit in units} & {
        unit.store_host.partition(":")[0] for unit in masked
    }
    assert len({unit.unique_key for unit in masked}) == len({unit.unique_key for unit in units})
    capsys.readouterr()
    for question in (["groups"], ["config"], ["index", "--entries"], ["trace", units[5].topic, units[5].keys[0]]):
        assert main([question[0], str(capsule), *question[1:]]) == 3
        assert "left out of the capsule" in capsys.readouterr().err
    assert main(["check", str(capsule), "--json"]) == 3
    assert not [line for line in capsys.readouterr().out.splitlines() if '"severity":"error"' in line]
    assert "masked: keys, hosts, tables" in str(disk.note)


@pytest.mark.parametrize("rule", ["AB01", "CL12", "CQ04"])
def test_a_masked_capsule_gives_the_plan_of_the_store_and_invents_no_finding(rule, tmp_path):
    """A capsule with masked keys had nothing of the index files: no start was planned with it, and check reported
    entries behind the end of the log (CQ13) where the log was gone (CL12).
    """
    root = healthy().write(tmp_path / "store")
    BROKEN[rule](root, healthy())
    capsule = tmp_path / "masked" / "store"
    capsule.parent.mkdir()
    assert main(["capsule", str(root), "-o", str(capsule), "--quiet", "--mask", "keys,hosts"]) == 0
    assert answer(capsule, ["recover", "--plan"]) == answer(root, ["recover", "--plan"])
    findings, masked = (
        {(row["id"], row["offset"]) for row in map(json.loads, answer(path, ["check"])[1]) if row["type"] == "finding"}
        for path in (root, capsule)
    )
    assert rule in {name for name, _ in masked}
    assert masked <= findings


@pytest.mark.parametrize("key", ["counted", "uuid"])
def test_a_capsule_has_at_most_2_percent_of_a_log_of_1_kib_messages(key, tmp_path, monkeypatch):
    """Hashes of keys in the index were stored too: with a random UUID as the key of each message it was 2.9 %."""
    if key == "uuid":
        numbers = random.Random(1)
        monkeypatch.setattr(data, "order_key", lambda _number: str(uuid.UUID(int=numbers.getrandbits(128), version=4)))
    root = log_store(tmp_path, "1k", 8 << 20)
    assert main(["dispatch", str(root), "--yes", "--no-backup"]) == 0
    assert main(["capsule", str(root), "-o", str(tmp_path / "x.capsule")]) == 0
    assert (tmp_path / "x.capsule").stat().st_size < {"counted": 0.006, "uuid": 0.02}[key] * (8 << 20)
    with open_store(root) as store, open_store(tmp_path / "x.capsule") as of_capsule:
        readers = zip(store.index_files(), of_capsule.index_files(), strict=True)
        assert all(reader.file.read(0, reader.size) == other.file.read(0, other.size) for reader, other in readers)


def test_what_cannot_be_read_is_left_out_on_request(store, tmp_path, capsys):
    capsule = tmp_path / "x.capsule"
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / "topics.json").symlink_to(tmp_path / "not-mounted")
    assert main(["capsule", str(store), "-o", str(capsule)]) == 3
    assert "nothing was written (--leave-out-unread leaves it out)" in capsys.readouterr().err
    assert not capsule.exists()
    assert main(["capsule", str(store), "-o", str(capsule), "--leave-out-unread"]) == 3
    assert main(["config", str(capsule)]) == 3
    assert f"{capsule}/config/topics.json: cannot be read: it is a link to {tmp_path}" in capsys.readouterr().err


def test_making_a_capsule_writes_only_that_file(store, tmp_path, capsys):
    before = golden_stores.fingerprint(store)
    target = tmp_path / "out" / "x.capsule"
    target.parent.mkdir()
    assert main(["capsule", str(store), "-o", str(target)]) == 0
    assert list(target.parent.iterdir()) == [target]
    assert golden_stores.changes(before, golden_stores.fingerprint(store)) == []
    assert main(["capsule", str(store), "-o", str(target)]) == 2
    assert main(["capsule", str(store), "-o", str(target), "--overwrite"]) == 0
    assert main(["capsule", str(store), "-o", str(store / "x.capsule")]) == 2
    assert main(["capsule", str(target), "-o", str(tmp_path / "again")]) == 2
    assert "expected a file outside the store" in capsys.readouterr().err
    assert golden_stores.changes(before, golden_stores.fingerprint(store)) == []


@pytest.mark.parametrize("name", [*sorted(WRITERS.keys() - {"replay"}), "snapshot", "copy"])
def test_commands_that_write_refuse_a_capsule(name, store, tmp_path, capsys):
    capsule = tmp_path / "x.capsule"
    main(["capsule", str(store), "-o", str(capsule)])
    before = capsule.read_bytes()
    words = WRITERS.get(name, [name, "STORE", str(tmp_path / "copy")])
    assert main([str(capsule) if word == "STORE" else word for word in words]) == 2
    assert "this is a capsule of a store" in capsys.readouterr().err
    assert capsule.read_bytes() == before
    assert not (tmp_path / "copy").exists()


def test_a_damaged_capsule_is_refused_with_its_place(store, tmp_path, capsys):
    capsule = tmp_path / "x.capsule"
    main(["capsule", str(store), "-o", str(capsule)])
    whole = capsule.read_bytes()
    capsule.write_bytes(whole[:-7])
    assert main(["info", str(capsule)]) == 3
    assert "the capsule is not complete" in capsys.readouterr().err
    capsule.write_bytes(whole[:60] + b"\xff" + whole[61:])  # in the first block
    assert main(["check", str(capsule)]) == 3
    assert "the capsule is damaged" in capsys.readouterr().err


def test_a_store_that_vanished_is_still_in_its_capsule(store, tmp_path):
    capsule = tmp_path / "x.capsule"
    main(["capsule", str(store), "-o", str(capsule)])
    expected = answer(store, ["check"])
    shutil.rmtree(store)
    assert answer(capsule, ["check"]) == expected
