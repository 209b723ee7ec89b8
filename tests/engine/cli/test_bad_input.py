"""Input that is not a healthy store gives an exit code, at most one clear line and no traceback, and the command
ends.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import agree
import handmade_stores
import pytest
from clean_answers import QUESTIONS, status_and_error
from commands import reading_commands
from unprivileged_user import as_nobody, open_folder

from engine.errors import StoreError

# -- not a store at all


def nothing(path):
    return path / "nowhere"


def empty(path):
    (path / "empty").mkdir()
    return path / "empty"


def a_text_file(path):
    (path / "notes.txt").write_text("hello " * 1000)
    return path / "notes.txt"


def an_empty_file(path):
    (path / "empty file").write_bytes(b"")
    return path / "empty file"


def a_folder_of_other_things(path):
    (path / "photos" / "2024").mkdir(parents=True)
    (path / "photos" / "a.jpg").write_bytes(b"\xff\xd8")
    return path / "photos"


def a_queue_folder(path):
    store = handmade_stores.healthy().write(path / "store")
    return store / "consumequeue" / "Orders" / "0"


def a_broken_link(path):
    (path / "link").symlink_to(path / "gone")
    return path / "link"


def a_link_to_itself(path):
    (path / "loop").symlink_to("loop")
    return path / "loop"


def a_device(_path):
    return Path("/dev/null")


def a_name_too_long(path):
    return path / ("x" * 5000)


NO_STORES = [
    (nothing, "found nothing of this name"),
    (empty, "found an empty directory"),
    (a_text_file, "no message unit"),
    (an_empty_file, "expected"),
    (a_folder_of_other_things, "2 other entries: 2024, a.jpg"),
    (a_queue_folder, "found queue files"),
    (a_broken_link, "expected"),
    (a_link_to_itself, ""),
    (a_device, "expected"),
    (a_name_too_long, ""),
]


@pytest.mark.parametrize(("make", "message"), NO_STORES)
def test_a_path_without_a_store_is_a_one_line_error(tmp_path, make, message):
    path = make(tmp_path)
    for command in QUESTIONS:
        status, err = status_and_error(path, command)
        if an_empty_file is make and status == 0:
            continue
        assert status == 3
        assert message in err
        assert str(path)[:40] in err


def test_without_rights_the_file_is_named():
    with open_folder() as folder:
        store = handmade_stores.healthy().write(folder / "store")
        locked = [store / "commitlog" / f"{0:020d}", store / "checkpoint", store / "consumequeue" / "Orders"]
        questions = [question for question in QUESTIONS if question[0] != "check"]
        for path in (*locked, store / "commitlog", store / "config", store):
            if not path.exists():
                path.mkdir()
            mode = path.stat().st_mode
            path.chmod(0)
            answers = as_nobody(lambda: [status_and_error(store, question) for question in questions])
            path.chmod(mode)
            assert all(status in {0, 1, 2, 3} for status, _ in answers)
        store.chmod(0)
        ((status, err),) = as_nobody(lambda: [status_and_error(store, ["info", "STORE"])])
        store.chmod(0o755)
        assert status == 3
        assert "cannot be" in err


# -- options that are wrong for a good store


def test_an_invalid_configuration(tmp_path):
    store = handmade_stores.healthy().write(tmp_path / "store")
    (tmp_path / "broken.conf").write_text("mappedFileSizeCommitLog=many\nmaxIndexNum=-5\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.conf").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "huge.conf").write_text("mappedFileSizeCommitLog=99999999999999999999999\n")
    for name in ("broken.conf", "folder", "nowhere.conf", "huge.conf"):
        for question in QUESTIONS[:4]:
            status, err = status_and_error(store, question, "--config", tmp_path / name)
            assert status in {2, 3}
            assert name in err
    status_and_error(store, ["info", "STORE"], "--config", tmp_path / "binary.conf")


def test_another_configuration_reads_the_same_log(tmp_path):
    store = handmade_stores.healthy().write(tmp_path / "store")
    (tmp_path / "b.conf").write_text("mappedFileSizeCommitLog=8192\nmaxHashSlotNum=7\nmaxIndexNum=9\n")
    (tmp_path / "right.conf").write_text("mappedFileSizeCommitLog=4096\n")
    for question in QUESTIONS:
        status_and_error(store, question, "--config", tmp_path / "b.conf")
    for question in (
        ["units", store],
        ["queue", store, "Orders", "0", "--resolve"],
        ["get", store, "Orders", "0", "0"],
    ):
        wrong, right = (
            agree.command(*question, "--json", "--config", tmp_path / name) for name in ("b.conf", "right.conf")
        )
        assert wrong[:2] == right[:2], "the files' own lengths count"
        assert len(right[1].splitlines()) > 5


@pytest.mark.parametrize("number", [-1, -(1 << 63), (1 << 63) - 1, 1 << 40, 7])
def test_numbers_outside_the_store(tmp_path, number):
    store = handmade_stores.healthy().write(tmp_path / "store")
    for question in (
        ["units", "STORE", "--from", number],
        ["units", "STORE", "--to", number],
        ["queue", "STORE", "Orders", number],
        ["queue", "STORE", "Orders", "0", "--from", number],
        ["queue", "STORE", "Orders", "0", "--to", number],
        ["get", "STORE", "Orders", "0", number],
        ["get", "STORE", "Orders", number, "0"],
        ["offset", "STORE", "Orders", "0", "--time", number],
        ["trace", "STORE", "Orders", "K1", "--begin", number],
        ["trace", "STORE", "Orders", "K1", "--end", number],
        ["message", "STORE", number],
        ["where", "STORE", number],
        ["where", "STORE", f"Orders/0/{number}"],
        ["where", "STORE", f"Orders/{number}/0"],
        ["queryCq", "-s", "STORE", "-t", "Orders", "-q", "0", "-i", number],
        ["queryMsgByOffset", "-s", "STORE", "-t", "Orders", "-i", "0", "-o", number],
    ):
        status_and_error(store, [str(word) for word in question])


@pytest.mark.golden
def test_every_command_ends_on_a_store_with_only_a_log(golden, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(golden("propcrc-5.3.3") / "commitlog", path / "commitlog")
    for arguments in reading_commands(path):
        status, _, err = agree.command(*arguments, "--json")
        assert status in {0, 1, 3}
        assert err.count("\n") <= 1


def test_an_error_names_the_file_and_the_offset():
    error = StoreError("expected a unit, found zeros", file="/x/0", offset=1234)
    assert str(error) == "/x/0 at offset 1,234: expected a unit, found zeros"


@pytest.mark.parametrize("unit", [20, 46])
def test_a_gap_of_a_trillion_entries_is_skipped(tmp_path, unit):
    """A queue file was copied under a name near 2⁶³. Check then visited every missing entry and never ended."""
    store = handmade_stores.healthy().write(tmp_path / "store")
    folder = store / ("consumequeue" if unit == 20 else "batchconsumequeue") / "Far" / "0"
    handmade_stores.write_queue(folder, struct.pack(">qiq", 0, 144, 0).ljust(unit, b"\0"), unit * 20)
    first_file = folder / f"{0:020d}"
    (folder / f"{(1 << 63) - 1:020d}").write_bytes(first_file.read_bytes())
    (folder / f"{(1 << 62) // (unit * 20) * unit * 20:020d}").write_bytes(first_file.read_bytes())
    for command in (*QUESTIONS, ["queue", "STORE", "Far", "0"], ["get", "STORE", "Far", "0", "0"]):
        status_and_error(store, command)
