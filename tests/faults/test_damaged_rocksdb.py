"""Damaged RocksDBs of a store: a command that needs one names the file and the damage, and nothing is concluded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import agree
import pytest
from made_rocksdb import binding, make_database

COMMANDS = {
    ("rocksdb-rows-5.5.1", "rocksdbstore"): ("rows", "STORE", "--of", "timer"),
    ("rocksdb-rows-5.4.0", "rocksdbstore"): ("rows", "STORE", "--of", "transactions"),
    ("rocksdb-rows-5.5.1", "kvStore"): ("rows", "STORE", "--of", "pop"),
    ("rocksdb-tables-v2-5.5.1", "config/rdb"): ("config", "STORE"),
    ("rocksdb-orders-5.5.1", "config/topics"): ("config", "STORE"),
    ("rocks-5.5.1", "consumequeue"): ("queue", "STORE", "TopicA", "0"),
}
"""A database of a golden store, and a command that reads it."""
RULES_ABOUT_ROWS = {"TM06", "CF17", "CF18"}


@pytest.fixture(scope="module", autouse=True)
def _needs_binding():
    binding()


def remove_tables(folder: Path) -> str:
    for table in folder.glob("*.sst"):
        table.unlink()
    return "expected a table file of"


def tear_log(folder: Path) -> str:
    """A further write-ahead log, with garbage in the middle of its writes."""
    rows = {f"{number:06d}".encode(): b"x" * 90 for number in range(2000)}
    made = make_database(folder.with_name("made"), {"default": rows}, flush=False)
    content = bytearray(next(made.glob("*.log")).read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = b"\xff" * 64
    (folder / "000900.log").write_bytes(content)
    shutil.rmtree(made)
    return "RocksDB cannot read it"


def put_old_manifest(folder: Path) -> str:
    """The manifest of another database: its table files are not there."""
    made = make_database(folder.with_name("made"), {"default": {b"a": b"1"}})
    for path in folder.glob("MANIFEST-*"):
        path.unlink()
    shutil.copy(next(made.glob("MANIFEST-*")), folder)
    shutil.copy(made / "CURRENT", folder)
    shutil.rmtree(made)
    return "expected a table file of"


def drop_families(folder: Path) -> str:
    make_database(folder, {"default": {}, "other": {b"a": b"1"}})
    return "expected a RocksDB with the column family"


DAMAGES: list[Callable[[Path], str]] = [remove_tables, tear_log, put_old_manifest, drop_families]
CASES = [
    pytest.param(*place, damage, id=f"{damage.__name__} {place[0]} {place[1]}")
    for place in COMMANDS
    for damage in DAMAGES
    if damage is not drop_families or not place[1].startswith("config/")  # a broker makes families that lack
]


def records(*arguments: object) -> tuple[int, list[dict[str, object]]]:
    status, out, _ = agree.command(*arguments, "--json")
    return status, [json.loads(line) for line in out.splitlines()]


@pytest.mark.golden
@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize(("name", "folder", "damage"), CASES)
def test_damage_of_a_database_is_named_and_nothing_is_concluded(golden, tmp_path, name, folder, damage):
    store = Path(shutil.copytree(golden(name), tmp_path / "store"))
    words = damage(store / folder)
    status, lines = records(*(store if word == "STORE" else word for word in COMMANDS[name, folder]))
    unreadable = [line for line in lines if line["type"] == "unreadable"]
    assert status == 3
    assert any(words in line["error"] and f"{store / folder}" in line["file"] for line in unreadable), unreadable
    _, lines = records("check", store)
    (summary,) = (line for line in lines if line["type"] == "summary")
    assert not summary["complete"]
    assert not RULES_ABOUT_ROWS & {line.get("id") for line in lines}


@pytest.mark.golden
def test_a_popped_message_is_not_lost_with_the_only_table_file(golden, tmp_path):
    """A RocksDB whose only table file was gone counted as empty: there were no popped messages, and all was fine."""
    store = Path(shutil.copytree(golden("rocksdb-rows-5.5.1"), tmp_path / "store"))
    remove_tables(store / "kvStore")
    status, lines = records("rows", store, "--of", "pop")
    assert status == 3
    assert [line["type"] for line in lines] == ["unreadable"]
