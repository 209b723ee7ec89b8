"""Unreadable bytes never count as missing: any read may fail, at any place, in any command.

Each open, list, look and read of each command fails in turn as with a bad disk, a lost mount or missing rights. A
command with such a failure ends with 3, names the file, calls nothing clean and has changed no byte. A run takes some
places of each command; ``STORESCOPE_UNREAD=all`` in the environment takes every one.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import re
import shutil
import sys
from pathlib import Path

import handmade_stores
import pytest
from failing_reads import CALLS, ERRORS, FailingDisk
from golden_stores import changes, fingerprint
from unprivileged_user import NOBODY, as_nobody, open_folder

from engine.cli import main as root
from engine.cli.command_table import COMMANDS
from engine.cli.main import main
from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.config import MessageStoreConfig, from_mapping
from engine.errors import CannotRead, StoreError
from engine.files.layout import StorePaths
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.mapped.reading import SystemDisk, read_through
from engine.mapped.real_file import RealFile
from engine.message_store import MessageStore
from engine.store.recovery.load_source import source

OFFSETS = {"Orders@readers": {"0": 3, "1": 20}, "Payments@tellers": {"0": 2}}
COMMAND_LINES = {
    "info": [["info", "STORE"]],
    "units": [["units", "STORE"], ["units", "STORE", "--from", "5000", "--limit", "2"]],
    "queue": [["queue", "STORE", "Orders", "0", "--resolve"]],
    "index": [["index", "STORE", "--entries"]],
    "trace": [["trace", "STORE", "Orders", "K1"]],
    "get": [["get", "STORE", "Orders", "0", "0", "--tag", "TagA"]],
    "message": [["message", "STORE", "U00001"], ["message", "STORE", "nothing"]],
    "offset": [["offset", "STORE", "Orders", "0", "--time", "1700000000100"]],
    "where": [
        ["where", "STORE", "U00001", "--group", "readers"],
        ["where", "STORE", "nothing"],
        ["where", "STORE", "Orders/0/99"],
    ],
    "conversation": [["conversation", "STORE", "U00001"], ["conversation", "STORE", "nothing", "--events"]],
    "positions": [["positions", "STORE"]],
    "groups": [["groups", "STORE"]],
    "space": [["space", "STORE"], ["space", "STORE", "--quick"]],
    "check": [["check", "STORE"]],
    "config": [["config", "STORE"]],
    "rows": [["rows", "STORE"]],
    "waiting": [["waiting", "STORE"]],
    "resend": [["resend", "STORE", "--where", "false", "--to", "127.0.0.1:9", "--plan"]],
    "timeline": [["timeline", "STORE"]],
    "histogram": [["histogram", "STORE"], ["histogram", "STORE", "--where", "size > 1"]],
    "sql": [
        ["sql", "STORE", "SELECT topic, count(*) FROM units GROUP BY 1"],
        ["sql", "STORE", "SELECT count(*) FROM queue_entries"],
    ],
    "compat": [["compat", "STORE"]],
    "recover": [["recover", "STORE", "--plan"], ["recover", "STORE", "--apply", "--yes"]],
    "diff": [["diff", "STORE", "STORE"]],
    "repair": [["repair", "STORE"], ["repair", "STORE", "--to", "NEW"], ["repair", "STORE", "--apply", "--yes"]],
    "salvage": [["salvage", "STORE"], ["salvage", "STORE", "--to", "NEW"]],
    "set_values": [
        ["set-offset", "STORE", "readers", "Orders", "0", "1", "--plan"],
        ["set-offset", "STORE", "readers", "Orders", "0", "1", "--yes"],
        ["set-checkpoint", "STORE", "physicMsgTimestamp", "1", "--yes"],
    ],
    "dispatch": [["dispatch", "STORE", "--yes"], ["dispatch", "STORE", "--to", "NEW", "--yes"]],
    "capsule": [["capsule", "STORE", "-o", "NEW"]],
    "snapshot": [["snapshot", "STORE", "NEW"], ["snapshot", "STORE", "NEW", "--recovery-set"]],
    "put": [["put", "STORE", "--topic", "Orders", "--queue", "0", "--body", "x", "--yes"]],
    "copy": [["copy", "STORE", "NEW"]],
    "mqadmin": [
        ["queryMsgByKey", "-s", "STORE", "-t", "Orders", "-k", "K1"],
        ["queryMsgById", "-s", "STORE", "-i", "7F00000100002A9F0000000000000090"],
        ["queryMsgByUniqueKey", "-s", "STORE", "-t", "Orders", "-i", "U00001"],
        ["queryMsgByOffset", "-s", "STORE", "-t", "Orders", "-i", "0", "-o", "3"],
        ["queryCq", "-s", "STORE", "-t", "Orders", "-q", "0", "-i", "3", "-c", "2"],
        ["printMsg", "-s", "STORE", "-t", "Orders"],
        ["printMsgByQueue", "-s", "STORE", "-t", "Orders", "-i", "0"],
        ["consumerProgress", "-s", "STORE", "-g", "readers"],
        ["topicStatus", "-s", "STORE", "-t", "Orders"],
        ["consumeMessage", "--store", "STORE", "-t", "Orders"],
        ["getBrokerEpoch", "-s", "STORE"],
    ],
}
NO_STORE = {"bench", "cluster", "completion", "doctor", "namesrv"}
"""Commands that read no store of anybody's."""
SERVES = {"mcp", "serve", "replicate", "replay"}
"""Run until they are ended, or need a recording; ``tests/engine/cli/commands`` ask them with a log that cannot be
read.
"""
ON_SPARK = {"pipeline"}
"""Reads in other processes, through :mod:`engine.pipeline.storage`; its own suite asks it."""
QUESTIONS = [question for questions in COMMAND_LINES.values() for question in questions]
HOWS = (*ERRORS, "vanish", "short")
CLEAN = re.compile(
    r'closed cleanly|no problems found(?! in what)|"willStart":true|would start:? +yes|"complete":true|'
    r'"verdict":"neverSeen"|nothing would be lost|no message has|no finding is'
)


def test_every_command_is_tested():
    assert set(COMMAND_LINES) | NO_STORE | SERVES | ON_SPARK == set(COMMANDS)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    store = handmade_stores.healthy().write(tmp_path_factory.mktemp("pristine") / "store")
    (store / "config").mkdir()
    (store / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": OFFSETS}))
    (store / "lock").touch()
    return store


def run_with_failures(store, question, new, disk, *arguments):
    """Return exit code and all output, with the store read through ``disk``."""
    words = [{"STORE": str(store), "NEW": str(new)}.get(word, word) for word in question]
    out, err = io.StringIO(), io.StringIO()
    with read_through(disk), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, *arguments])
    return code, out.getvalue(), err.getvalue()


def changed(fingerprint_before, store):
    """Return all changes but the lock that was taken and the time of the store's own folder."""
    return [
        change
        for change in changes(fingerprint_before, fingerprint(store))
        if change not in {"lock: changed", ".: changed"}
    ]


def planned(counts, seed):
    """Return (call, its number, the kind of failure): all, or one of each call and kind of error."""
    rng = random.Random(seed)
    for call in CALLS:
        for how in HOWS:
            if (how == "short" and not call.startswith("read")) or (call, how) == ("status", "vanish"):
                continue  # what nobody listed and the system does not know is absent
            numbers = range(counts[call])
            everything = os.environ.get("STORESCOPE_UNREAD") == "all"
            some = numbers if everything else rng.sample(numbers, min(1, len(numbers)))
            yield from ((call, number, how) for number in some)


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: " ".join(question[:5]).replace("STORE ", ""))
def test_an_unreadable_place_is_reported_and_nothing_is_changed(question, pristine, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(pristine, store)
    counting = FailingDisk(store)
    counted = run_with_failures(store, question, tmp_path / "counted", counting)
    assert counted[0] in {0, 1}, counted
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(pristine, store)
    fingerprint_before = fingerprint(store)
    for case in planned(counting.counts, " ".join(question)):
        disk, new = FailingDisk(store, *case), tmp_path / "new"
        code, out, err = run_with_failures(store, question, new, disk, "--json")
        text = f"{case} {disk.hit}\n{out[-3000:]}\n{err}"
        if disk.hit:
            assert code == 3, text
            assert disk.hit in out + err, text
            assert not CLEAN.search(out + err), text
            assert list(tmp_path.iterdir()) == [store], text  # neither a copy nor a folder of what was kept
            assert changed(fingerprint_before, store) == [], text
            assert err.count("storescope: ") == 1, text
        else:
            assert code in {0, 1}, text
            for path in tmp_path.iterdir():
                shutil.rmtree(path)
            shutil.copytree(pristine, store)
            fingerprint_before = fingerprint(store)


@pytest.fixture
def locked(pristine):
    """Make a store of a user without rights, who may not read his own log files."""
    with open_folder() as folder:
        store = folder / "store"
        shutil.copytree(pristine, store)
        for path in (folder, store, *store.rglob("*")):
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
        for path in (store / "commitlog").iterdir():
            path.chmod(0)
        yield store


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: " ".join(question[:5]).replace("STORE ", ""))
def test_log_files_without_rights(question, locked):
    """``chmod 000 commitlog/*`` on a healthy store: ``recover --apply --yes`` ended with 0, cut 470 entries and deleted
    four queue files, ``info`` said "closed cleanly, 0 messages".
    """
    sys.stdout.flush()
    fingerprint_before = fingerprint(locked) if os.geteuid() == 0 else None
    new = locked.with_name("new")

    def ask():
        words = [{"STORE": str(locked), "NEW": str(new)}.get(word, word) for word in question]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = root.main(words)
        return code, out.getvalue(), err.getvalue()

    code, out, err = as_nobody(ask)
    reads_no_log = question[0] == "index"
    assert code in ({0, 1} if reads_no_log else {3}), out + err
    assert reads_no_log or "commitlog" in err
    assert reads_no_log or not CLEAN.search(out + err), out + err
    assert fingerprint_before is None or changed(fingerprint_before, locked) == []


@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "consumequeue/Orders", "index", "config", "checkpoint"])
def test_the_engine_does_not_open_what_it_cannot_read(part, locked):
    """The engine treated a folder that could not be listed, and an unreadable table or checkpoint, as missing."""
    for path in (locked / "commitlog").iterdir():
        path.chmod(0o644)
    fingerprint_before = fingerprint(locked) if os.geteuid() == 0 else None
    mode = (locked / part).stat().st_mode
    (locked / part).chmod(0)

    def start():
        try:
            MessageStore(locked, services=False).close()
        except (CannotRead, OSError) as error:
            return str(error)
        return "it opened"

    output = as_nobody(start)
    (locked / part).chmod(mode)
    assert part in output
    assert fingerprint_before is None or changed(fingerprint_before, locked) == []


class FailingEngineDisk(RealDisk):
    """The call number ``at`` of those by which the engine lists, looks and reads whole files fails with ``EIO``."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.calls = at, 0

    def _count(self) -> None:
        self.calls += 1
        if self.calls > self.at >= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO), "planted")

    def entries(self, folder):
        self._count()
        return super().entries(folder)

    def exists(self, path):
        self._count()
        return super().exists(path)

    def read_file(self, path):
        self._count()
        return super().read_file(path)


def test_whatever_the_engine_cannot_look_at_leaves_the_store_as_it_was(pristine, tmp_path):
    """While it loads: afterwards it has recovered, and writes ``abort``."""
    loading = FailingEngineDisk(-1)
    source(StorePaths(pristine), MessageStoreConfig(), loading)
    for position in range(loading.calls):
        store = tmp_path / str(position)
        shutil.copytree(pristine, store)
        fingerprint_before = fingerprint(store)
        with pytest.raises((OSError, StoreError), match=r"planted|Input"):
            MessageStore(store, MessageStoreConfig(), disk=FailingEngineDisk(position), services=False)
        assert changed(fingerprint_before, store) == [], position


class RottenFile(RealFile):
    """A file with a byte ``at`` that gives ``EIO``."""

    at = -1

    def read(self, position, size):
        self.raise_if_rotten(position, size)
        return super().read(position, size)

    def read_into(self, view, position):
        self.raise_if_rotten(position, len(view))
        return super().read_into(view, position)

    def lend(self, position, size):
        return None if position <= self.at < position + size else super().lend(position, size)

    def raise_if_rotten(self, position, size):
        if position <= self.at < position + size:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)


class RottenDisk(RealDisk):
    """A disk on which the byte ``at`` of the file ``name`` cannot be read."""

    def __init__(self, name: str, at: int) -> None:
        super().__init__()
        self.name, self.at = name, at

    def open(self, path, size):
        file = super().open(path, size)
        if path.name == self.name and path.parent.name == "commitlog":
            file.at = self.at
        return file

    def _file(self, path, size, new_folders=()):
        return RottenFile(path, size, self._files, new_folders)


@pytest.mark.parametrize("ended", ["crash", "normal"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_rotten_place_in_the_log_leaves_the_store_as_it_was(tmp_path, ended, share):
    """After a crash recovery walks and writes in one: before it met the rotten place, it had dispatched units, cut
    queues and deleted index files.
    """
    root = tmp_path / "store"
    sizes = {"mappedFileSizeCommitLog": 1 << 16, "maxHashSlotNum": 50, "maxIndexNum": 500}
    config = from_mapping({**sizes, "mappedFileSizeConsumeQueue": 400})[0]
    store = MessageStore(root, config, services=False)
    assert all(store.put_message(Message("Orders", b"tea" * 20, keys=f"k{n}")).ok for n in range(200))
    store.close()
    shutil.rmtree(root / "consumequeue" / "Orders" / "0")
    if ended == "crash":
        (root / "abort").write_text("4711")
    log = min((root / "commitlog").iterdir())
    position = int(len(log.read_bytes().rstrip(b"\0")) * share)
    fingerprint_before = fingerprint(root)
    with pytest.raises(CannotRead, match="Input/output error"):
        MessageStore(root, config, disk=RottenDisk(log.name, position), services=False)
    assert changed(fingerprint_before, root) == []
    with MessageStore(root, config, services=False) as second_store:
        assert second_store.max_offset_in_queue("Orders", 0) == 200


@pytest.mark.parametrize("position", [100, 9 << 20, 59 << 20])
def test_a_rotten_place_in_a_large_log_file_leaves_the_store_as_it_was(tmp_path, position):
    """Files of 64 MiB or more were read through a map: the process would have died of SIGBUS at such a place."""
    root, config = tmp_path / "store", from_mapping({"mappedFileSizeCommitLog": 64 << 20})[0]
    with MessageStore(root, config, services=False) as store:
        assert all(store.put_message(Message("Orders", b"tea!" * (1 << 18))).ok for _ in range(60))
    shutil.rmtree(root / "consumequeue" / "Orders")
    fingerprint_before = fingerprint(root)
    with pytest.raises(CannotRead, match="Input/output error") as raises:
        MessageStore(root, config, disk=RottenDisk(f"{0:020d}", position), services=False)
    assert raises.value.file == str(root / "commitlog" / f"{0:020d}")
    assert changed(fingerprint_before, root) == []
    with MessageStore(root, config, services=False) as second_store:
        assert second_store.max_offset_in_queue("Orders", 0) == 60


def test_unreadable_bytes_are_not_lent(tmp_path):
    """The last pages of a file that was cut behind the map are such bytes."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * (1 << 20))
    disk = RealDisk()
    file = disk.open(path, 1 << 20)
    assert bytes(file.lend(5000, 10_000)) == b"x" * 10_000
    os.truncate(path, 1 << 19)
    assert file.lend((1 << 19) - 4096, 8192) is None
    assert bytes(file.lend(0, 1 << 19)) == b"x" * (1 << 19)
    file.close()
    disk.close()


@pytest.mark.parametrize("part", ["index", "consumequeue", "config", "checkpoint"])
def test_an_unreadable_part_does_not_hide_findings_about_the_others(pristine, tmp_path, part):
    """With all index files unreadable the check ended there: a wrong CRC in the log was not reported."""
    store = tmp_path / "store"
    shutil.copytree(pristine, store)
    with open_store(store) as looked:
        unit = next(item for item in looked.units() if isinstance(item, Unit) and item.body)
        log = looked.log.sequence.find(unit.offset)
    with Path(log.path).open("r+b") as data:
        data.seek(log.read(0, log.size).index(unit.body, unit.offset - log.start_offset))
        data.write(bytes([unit.body[0] ^ 1]))

    class PartialDisk(SystemDisk):
        def open(self, path):
            if path.startswith(str(store / part)):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return super().open(path)

    code, out, err = run_with_failures(store, ("check", "STORE"), tmp_path / "new", PartialDisk(), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert "CL03" in {record.get("id") for record in records}
    assert any(record["type"] == "unreadable" for record in records)
    assert not next(record for record in records if record["type"] == "summary")["complete"]
    assert code == 3, err
