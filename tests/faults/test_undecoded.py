"""A part of a store that is recognised and not decoded is not absent: nothing is concluded from it, nothing is written
over it. Every command and every writer is asked over each kind of such a store.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import struct
from pathlib import Path

import pytest
import recorded_requests
from golden_stores import changes, fingerprint

from engine.cli.main import COMMANDS, main
from engine.codec.foreign import EntryHeader, encode_header
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.errors import Undecoded
from engine.inspection.snapshot import open_store
from engine.lab.server import OwnStore
from engine.message_store import MessageStore
from engine.remoting.recording import Recorder

GOLDEN = (
    "rocks-5.5.1",
    "rocks-separate-5.5.1",
    "combine-5.5.1",
    "rocksdb-orders-5.5.1",
    "rocksdb-tables-v2-5.5.1",
    "rocksdb-timer-index-5.5.1",
)
MADE = ("popped", "popped elsewhere", "single tables", "dledger", "dledger by another name", "dledger in commitlog")
WRITERS = {
    "put": ["put", "STORE", "--topic", "Orders", "--body", "tea", "--yes"],
    "serve": ["serve", "STORE", "--port", "0", "--namesrv-port", "0"],
    "recover": ["recover", "STORE", "--apply", "--yes"],
    "dispatch": ["dispatch", "STORE", "--yes"],
    "replay": ["replay", "RECORDING", "--store", "STORE", "--yes"],
    "replicate": ["replicate", "127.0.0.1:9", "STORE"],
}
"""Commands that write into a store that is there."""
READERS = {
    "info", "units", "queue", "index", "trace", "get", "message", "offset", "where", "positions", "groups", "space",
    "check", "config", "snapshot", "mqadmin",
}  # fmt: skip
TO_A_NEW_PLACE = {"copy", "pipeline"}
NO_STORE = {"bench", "cluster", "completion", "namesrv"}


def test_every_command_is_a_writer_or_writes_into_no_store_that_is_there():
    assert set(WRITERS) | READERS | TO_A_NEW_PLACE | NO_STORE == set(COMMANDS)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    recorder = Recorder(folder / "talk.requests")
    recorded_requests.seen_in_a_talk(folder / "first", recorder.take)
    recorder.close()
    return folder / "talk.requests"


@pytest.fixture
def undecoded(golden, tmp_path):
    """Makes a store of one of the kinds of ``GOLDEN`` and ``MADE``."""

    def make(kind: str) -> Path:
        root = tmp_path / "store"
        shutil.copytree(golden(kind if kind in GOLDEN else "clean-5.5.1"), root)
        tables = golden("rocksdb-orders-5.5.1") / "config" / "topics"
        if kind == "popped":
            shutil.copytree(tables, root / "kvStore")
        elif kind == "popped elsewhere":
            shutil.copytree(tables, root / "moved" / "by" / "somebody")
        elif kind == "single tables":
            shutil.copytree(tables, root / "config" / "metadata")
        elif kind.startswith("dledger"):
            into_dledger(root, {"dledger": "dledger-n0", "dledger by another name": "raft"}.get(kind))
        return root

    return make


def into_dledger(root: Path, folder: str | None) -> None:
    """Move the log's units into entries of DLedger, in ``folder`` or in commitlog itself; queues lead to the units."""
    with open_store(root) as store:
        units = [store.log.sequence.read(one.offset, one.size) for one in store.units() if isinstance(one, Unit)]
    data, index = bytearray(), bytearray()
    for number, unit in enumerate(units):
        position = len(data)
        header = EntryHeader(1, 48 + len(unit), number, 1, position, 0, 0, 0, len(unit))
        data += encode_header(header) + unit
        index += struct.pack(">iqiqq", 1, position, 48 + len(unit), number, 1)
    for path in (root / "commitlog").iterdir():
        path.unlink()
    places = {"data": root / "commitlog"} if folder is None else {"data": root / folder / "data"}
    places["index"] = root / (folder or "commitlog") / "index"
    for path in places.values():
        path.mkdir(parents=True, exist_ok=True)
    (places["data"] / f"{0:020d}").write_bytes(data.ljust(2 << 20, b"\0"))
    if folder is not None:
        (places["index"] / f"{0:020d}").write_bytes(index)


def told(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


@pytest.mark.golden
@pytest.mark.parametrize("kind", [*GOLDEN, *MADE])
def test_nothing_is_written_into_a_store_with_a_part_that_is_not_decoded(kind, undecoded, recording):
    """``put``, ``serve`` and ``recover --apply`` built file queues into the folder of a RocksDB and said nothing.
    ``dispatch`` did the same where the RocksDB lay in ``consumequeue_rocksdb``.
    """
    root = undecoded(kind)
    before = fingerprint(root)
    for name, words in WRITERS.items():
        asked = [{"STORE": root, "RECORDING": recording}.get(word, word) for word in words]
        code, out, err = told(*asked)
        assert code == 3, (name, out, err)
        assert "not decoded" in err, (name, err)
        assert err.count("storescope: ") == 1, (name, err)
        assert changes(before, fingerprint(root)) == [], name
        assert list(root.parent.iterdir()) == [root], name  # no folder of what was kept
    for opened in (
        lambda: MessageStore(root),
        lambda: MessageStore(root, services=False, empty_log=True),
        lambda: OwnStore(root, MessageStoreConfig(), "5.3"),
    ):
        with pytest.raises(Undecoded, match="nothing is written into this store"):
            opened()
        assert changes(before, fingerprint(root)) == []
        assert list(root.parent.iterdir()) == [root]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.5.1", "crash-5.4.0", "broker-tags-5.5.1"])
def test_the_rocksdb_that_every_store_of_5_4_has_is_in_nobodys_way(name, golden, tmp_path):
    """``rocksdbstore`` holds no record by default: no table file, and a write-ahead log without a byte."""
    root = tmp_path / "store"
    shutil.copytree(golden(name), root)
    code, out, _ = told("info", root, "--json")
    assert code == 0
    assert not any("RocksDB" in note for note in json.loads(out.splitlines()[0])["notes"])
    assert told("put", root, "--topic", "Orders", "--body", "tea", "--yes")[0] == 0
