"""Files of another machine read as they are, and every command answers as on that machine."""

from __future__ import annotations

import os
from pathlib import Path

import golden_stores
import pytest
from capsule_answers import answer, questions
from ssh_stand_in import MACHINE, install_stand_in, on_machine

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.config import from_mapping
from engine.inspection import open_store
from engine.mapped.reading import SystemDisk
from engine.message_store import MessageStore

SHORT_GOLDEN = ("broker-transactions-5.4.0",)
OTHER_GOLDEN = sorted(
    {path.parent.name for path in golden_stores.GOLDEN.glob("*/store.tar.xz")}.difference(SHORT_GOLDEN)
)


def facts(info):
    return info.st_mode, info.st_dev, info.st_ino, info.st_nlink, info.st_size, info.st_mtime_ns, info.st_blocks


def test_listings_and_facts_are_those_of_the_system(disk, tmp_path):
    store = tmp_path / "store"
    (store / "commitlog" / "00000000000000000000").write_bytes(b"units")
    (store / "to_file").symlink_to("commitlog/00000000000000000000")
    (store / "to_nothing").symlink_to("nothing")
    (store / os.fsdecode(b"not-utf8-\xff")).touch()
    here = {entry.name: entry for entry in SystemDisk().entries(str(store))}
    there = {entry.name: entry for entry in disk.entries(str(on_machine(store)))}
    assert here.keys() == there.keys()
    for name, entry in there.items():
        for follow in (True, False):
            assert entry.is_dir(follow_symlinks=follow) == here[name].is_dir(follow_symlinks=follow), name
            assert entry.is_file(follow_symlinks=follow) == here[name].is_file(follow_symlinks=follow), name
        assert facts(entry.stat(follow_symlinks=False)) == facts(here[name].stat(follow_symlinks=False))
    for name in ("lock", "to_file", "commitlog"):
        assert disk.status(str(on_machine(store / name)), True).st_ino == (store / name).stat().st_ino
    for name in ("to_nothing", "absent", "absent/below"):
        with pytest.raises(FileNotFoundError):
            disk.status(str(on_machine(store / name)), True)


def test_a_file_that_is_opened_again_and_again_takes_no_more_memory(disk, tmp_path, read):
    """A window that follows a store opens small files several times a second, for days."""
    file = tmp_path / "store" / "lock"
    for _ in range(50):
        assert read(file, 1) == b""
    assert len(disk._files) == 1


def test_holes_are_those_of_the_file(disk, tmp_path):
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    with file.open("wb") as sparse:
        sparse.truncate(4 << 20)
        sparse.seek(1 << 20)
        sparse.write(b"x" * 4096)
    with file.open("rb") as opened:
        here = SystemDisk().extents(opened.fileno(), 0, 4 << 20)
    descriptor = disk.open(str(on_machine(file)))
    assert disk.extents(descriptor, 0, 4 << 20) == here
    assert disk.next_data(descriptor, 0, 4 << 20) == here[0][0]
    os.close(descriptor)


def test_paths_of_this_machine_are_read_here(disk, tmp_path):
    (tmp_path / "here").write_bytes(b"here")
    assert disk.is_plain(str(tmp_path / "here"))
    descriptor = disk.open(str(tmp_path / "here"))
    assert disk.read(descriptor, 9, 0) == b"here"
    os.close(descriptor)


def test_a_broken_connection_is_an_error_of_the_file_that_was_read(disk, tmp_path, monkeypatch):
    """Nothing may be concluded from bytes that did not come: the file is unread, and the error names it."""
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    file.write_bytes(b"units")
    monkeypatch.setattr("engine.ssh.connection._RECONNECT_DELAYS_S", (0.0, 0.0))
    monkeypatch.setenv("STORESCOPE_SSH", "/nothing/of/this/name")
    disk.connection._pipe.process.kill()
    disk.connection._pipe.process.wait()
    with pytest.raises(OSError, match="no connection to elsewhere") as error:
        disk.status(str(on_machine(file)), True)
    assert error.value.filename == str(on_machine(file))


def answers_like_the_store(store: Path, *counts: int) -> list[str]:
    """Return the questions that the store answers in another way when it is read through ssh."""
    different = []
    for question in questions(store, *counts):
        read_here = ["--here"] if question[0] == "check" else []  # it runs there where Storescope is installed
        here, there = answer(store, question), answer(on_machine(store), [*question, *read_here])
        if here != (there[0], there[1], there[2].replace(f"{MACHINE.replace(':/', '://')}{store}", "STORE")):
            different.append(f"{' '.join(question)}: {here[0]} {there[0]} {here[2]} {there[2]}")
    return different


@pytest.mark.golden
@pytest.mark.parametrize("name", SHORT_GOLDEN)
def test_a_real_store_on_another_machine_answers_as_here(name, golden, unchanged, tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    assert answers_like_the_store(unchanged(golden(name))) == []


@pytest.mark.golden
@pytest.mark.full_form
@pytest.mark.parametrize("name", OTHER_GOLDEN)
def test_every_real_store_on_another_machine_answers_as_here(name, golden, unchanged, tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    assert answers_like_the_store(unchanged(golden(name)), 4, 4) == []


def test_a_store_below_the_folder_that_is_named_is_opened(tmp_path, golden, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    store = golden("broker-orders")
    with open_store(on_machine(store.parent)) as snapshot:
        assert snapshot.path.name == store.name
        assert snapshot.log.end_offset


def test_a_store_that_is_written_is_followed(tmp_path, monkeypatch):
    """The writer uses maps and holds the lock: every refresh shows what was put before it, a new file once the listing
    is old.
    """
    install_stand_in(tmp_path, monkeypatch)
    settings = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 20 * 50})[0]
    with MessageStore(tmp_path / "store", settings) as store:
        store.put_message(Message("Orders", b"first", queue_id=0))
        with open_store(on_machine(tmp_path / "store")) as snapshot:
            assert snapshot.lock_state == "held"
            for number in range(80):
                if number == 60:
                    monkeypatch.setattr("engine.ssh.listings.MAX_AGE_S", 0.0)
                    monkeypatch.setattr("engine.ssh.block_cache.MAX_AGE_S", 0.0)
                message = Message("Orders", b"%d" % number * 40, queue_id=0)
                append = [store.put_message(message).append for _ in range(5)][-1]
                snapshot.refresh()
                assert snapshot.log.max_offset == append.physical_offset + append.size
                assert not snapshot.unread
            assert [item.body for item in snapshot.units() if isinstance(item, Unit)][-1] == b"79" * 40
