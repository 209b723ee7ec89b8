"""Entries of an intact index show messages whose properties changed; an index of another store shows none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

COUNT = 80


def store_of(key: str, *, changed_from: int = COUNT, changed_key: str = "") -> HandmadeStore:
    """Return a store of messages of one length; those from ``changed_from`` on have keys of ``changed_key``."""
    store = HandmadeStore()
    for number in range(COUNT):
        letter = key if number < changed_from else changed_key
        store.put(keys=f"{letter}{number:02d}", unique=f"{letter}-{number:02d}", step=400)
    return store


def findings_of(root: Path) -> list[Finding]:
    with open_store(root) as store:
        findings = [item for item in check(store) if isinstance(item, Finding)]
    return [finding for finding in findings if finding.severity in ("warn", "error")]


def replace_in_log(root: Path, old: bytes, new: bytes) -> None:
    for file in (root / "commitlog").iterdir():
        file.write_bytes(file.read_bytes().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        (b"KEYS\x01A40", b"KEYS\x01zzz", 1),
        (b"UNIQ_KEY\x01A-40", b"QWERTZUI\x01A-40", 1),
        (b"KEYS\x01A40\x02UNIQ_KEY\x01A-40", b"qwertzuiopasdfghjkly", 2),
    ],
    ids=["a key", "the name of the unique key", "all keys"],
)
def test_a_message_without_keys_that_the_index_has(tmp_path: Path, old: bytes, new: bytes, keys: int) -> None:
    """Legible bytes over the properties were called an error of the index, or a note on keys of an unknown kind."""
    store = store_of("A")
    root = store.write(tmp_path / "s")
    replace_in_log(root, old, new.ljust(len(old), b"m"))
    (finding,) = findings_of(root)
    assert (finding.id, finding.offset) == ("CL04", store.units[40].offset)
    assert finding.evidence["keys"] == keys
    assert ("its topic" in finding.message) == (keys == 2)
    assert "do not build the index again" in finding.next_step.lower()


def test_an_index_of_another_store_with_messages_of_the_same_lengths_proves_no_change(tmp_path: Path) -> None:
    root = store_of("A").write(tmp_path / "s")
    shutil.rmtree(root / "index")
    shutil.copytree(store_of("B").write(tmp_path / "other") / "index", root / "index")
    (finding,) = (finding for finding in findings_of(root) if finding.id != "IX05")
    assert (finding.id, finding.kind) == ("IX06", "foreign")


def test_an_index_file_of_another_store_proves_no_change(tmp_path: Path) -> None:
    root = store_of("A").write(tmp_path / "s")
    other = store_of("B").write(tmp_path / "other")
    name = sorted(file.name for file in (root / "index").iterdir())[1]
    shutil.copy(other / "index" / name, root / "index" / name)
    assert {finding.id for finding in findings_of(root)} == {"IX06"}


def test_an_index_from_before_the_log_was_written_again_proves_no_change(tmp_path: Path) -> None:
    root = store_of("A", changed_from=60, changed_key="B").write(tmp_path / "s")
    shutil.rmtree(root / "index")
    shutil.copytree(store_of("A").write(tmp_path / "before") / "index", root / "index")
    assert "CL04" not in {finding.id for finding in findings_of(root)}


def test_an_entry_of_another_time_than_its_message_proves_no_change(tmp_path: Path) -> None:
    store = store_of("A")
    store.units[40].store_timestamp += 5_000
    root = store.write(tmp_path / "s")
    replace_in_log(root, b"KEYS\x01A40", b"KEYS\x01zzz")
    assert {finding.id for finding in findings_of(root)} == {"IX06"}
