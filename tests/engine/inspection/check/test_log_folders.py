"""A log in several folders (``storePathCommitLog``), read with and without the broker's configuration."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import agree
import pytest

pytestmark = pytest.mark.golden
STORE = "several-log-folders-5.5.1"
LONG = "queues-gone-past-ten-files-5.5.1"
SIZES = "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
PARTIAL = "of 2 files of the log only one is here"


@pytest.fixture
def half(golden, tmp_path) -> Path:
    """A store with every second file of its log in another folder, as a broker with two folders leaves it."""
    root = tmp_path / "store"
    shutil.copytree(golden(LONG), root, ignore=shutil.ignore_patterns("timerwheel"))
    (tmp_path / "disk2").mkdir()
    for path in sorted((root / "commitlog").iterdir())[1::2]:
        path.rename(tmp_path / "disk2" / path.name)
    return root


def configuration(root: Path, folders: str, sizes: str = "") -> list[object]:
    file = root.parent / "broker.conf"
    file.write_text(f"storePathRootDir={root}\nstorePathCommitLog={folders}\n{sizes}")
    return ["--config", file]


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_real_store_is_healthy_with_its_configuration(separator, golden, golden_account, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden(STORE), root, ignore=shutil.ignore_patterns("timerwheel"))
    options = configuration(root, f"{root / 'commitlog'}{separator}{root / 'disks' / '2'}", SIZES)
    *findings, summary = agree.records_of("check", root, *options)
    assert (findings, summary["complete"]) == ([], True)
    for send in list(golden_account(STORE, "truth.jsonl.xz"))[::60]:
        unit = agree.records_of("get", root, "Orders", send["queueId"], send["offset"], "--max", 1, *options)[-1]
        assert (unit["queueOffset"], unit["uniqueKey"]) == (send["offset"], send["msgId"])


def test_nothing_is_concluded_from_files_in_another_folder(half):
    """check said of each second file that it is missing, and where that retention had deleted it."""
    status, out, error = agree.command("check", half, "--json")
    assert status == 3
    assert PARTIAL in error
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["type"] for record in records] == ["summary", "unreadable"]
    assert not records[0]["complete"]
    status, out, _ = agree.command("where", half, "nothing-has-this-key")
    assert (status, out.startswith("unknown"), PARTIAL in out) == (3, True, True)


@pytest.mark.parametrize(
    "command",
    [
        ["put", "STORE", "--topic", "Orders", "--body", "tea", "--yes"],
        ["recover", "STORE", "--apply", "--yes"],
        ["dispatch", "STORE", "--yes"],
    ],
    ids=lambda words: words[0],
)
def test_nothing_is_written_into_a_part_of_a_log(command, half):
    before = sorted((path, path.stat().st_size) for path in half.rglob("*"))
    status, _, error = agree.command(*[half if word == "STORE" else word for word in command])
    assert status == 3
    assert PARTIAL in error
    assert sorted((path, path.stat().st_size) for path in half.rglob("*")) == before


def test_with_both_folders_the_log_is_whole(half):
    options = configuration(half, f"{half / 'commitlog'},{half.parent / 'disk2'}", "mappedFileSizeCommitLog=98304\n")
    (info,) = agree.records_of("info", half, *options)
    assert len(info["files"]["commitlog"]) == 17
    assert "unreadable" not in {record["type"] for record in agree.records_of("check", half, *options)}


def test_a_folder_that_is_not_here_is_named(half):
    options = configuration(half, f"{half / 'commitlog'},{half.parent / 'gone'}", "mappedFileSizeCommitLog=98304\n")
    status, out, error = agree.command("info", half, *options)
    assert status == 3
    assert f"storePathCommitLog names {half.parent / 'gone'}, which is not here" in out
    assert PARTIAL in error
