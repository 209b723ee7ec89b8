"""The release that wrote a store last: the marks of each release, and stores that two releases wrote."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from engine.codec.checkpoint import Checkpoint, encode
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths
from engine.lab.lab_store import LabStore
from engine.mapped.disk import RealDisk
from engine.releases import NAMES
from engine.services.opening import written_by
from engine.store.written_release import TagEntries, WrittenRelease, guess

ORDER_INFO = b'{"orderInfoCount":0,"orderedConsumptionLevel":"QUEUE","table":{}}'


class Files:
    def __init__(self, root: Path, file_bytes: dict[str, bytes]) -> None:
        self._held = {root / name: data for name, data in file_bytes.items()}

    def exists(self, path: Path) -> bool:
        return any(path_of_file == path or path in path_of_file.parents for path_of_file in self._held)

    def read(self, path: Path) -> bytes | None:
        return self._held.get(path)

    def names(self, folder: Path) -> list[str]:
        return [path.name for path in self._held if path.parent == folder]


def guessed(file_bytes: dict[str, bytes], entries: TagEntries | None = None) -> WrittenRelease | None:
    root = Path("/store")
    return guess(StorePaths(root), Files(root, file_bytes), lambda: entries)


def options(version: str) -> bytes:
    return f"[Version]\n  rocksdb_version={version}\n  options_file_version=1.1\n".encode()


@pytest.mark.parametrize(
    ("file_bytes", "release"),
    [
        ({"checkpoint": encode(Checkpoint(9, 9, 9, None, 9, 77))}, "5.5"),
        ({"rocksdbstore/OPTIONS-000007": options("8.4.4"), "checkpoint": encode(Checkpoint(9, 9, 9))}, "5.5"),
        ({"rocksdbstore/OPTIONS-000007": options("8.4.0"), "checkpoint": encode(Checkpoint(9, 9, 9))}, "5.4"),
        ({"rocksdbstore/OPTIONS-000007": options("8.4.0"), "checkpoint": encode(Checkpoint(9, 0, 9))}, "5.5"),
        ({"rocksdbstore/CURRENT": b"MANIFEST-000001\n"}, "5.5"),
        (
            {
                "rocksdbstore/OPTIONS-000007": options("8.4.0"),
                "consumequeue/CURRENT": b"MANIFEST-000001\n",
                "checkpoint": encode(Checkpoint(9, 0, 9)),
            },
            "5.4",
        ),
        ({"rocksdbstore/CURRENT": b"MANIFEST-000001\n", "consumequeue_rocksdb/CURRENT": b"MANIFEST-000001\n"}, "5.5"),
        ({"config/consumerOrderInfo.json": ORDER_INFO, "checkpoint": encode(Checkpoint(9, 9, 9))}, "5.4"),
        ({"config/consumerOrderInfo.json": b'{"table":{}}', "checkpoint": encode(Checkpoint(9, 9, 9))}, "5.3"),
        ({"abort.bak": b"", "checkpoint": encode(Checkpoint(9, 9, 9))}, "5.3"),
        ({"checkpoint": encode(Checkpoint(9, 9, 9, None, 5))}, "5.3"),
        ({"checkpoint": encode(Checkpoint(9, 9, 9))}, "4.9"),
    ],
)
def test_each_release_is_recognised(file_bytes, release):
    written = guessed(file_bytes)
    assert written is not None
    assert written.release == release
    assert written.evidence


def test_no_release_is_guessed_without_marks():
    assert guessed({}) is None
    assert guessed({"checkpoint": b"short"}) is None


def test_tag_entries_alone_mean_5_4():
    file_bytes = {"checkpoint": encode(Checkpoint(9, 9, 9)), "abort.bak": b""}
    written = guessed(file_bytes, TagEntries(5, 5))
    assert written == ("5.4", "its index has entries of tags")


def test_an_older_release_that_continued_a_store_is_named_with_the_contradiction():
    """The marks of 5.5 stay after a downgrade. The newest units have no tag entries, so an older release wrote them."""
    file_bytes = {"checkpoint": encode(Checkpoint(9, 9, 9, None, 9, 77))}
    written = guessed(file_bytes, TagEntries(20, 0))
    assert written is not None
    assert written.release == "5.3"
    assert written.evidence.startswith("its checkpoint has a logicsPhysicalOffset, but its newest units have no index")


def test_a_new_lab_store_shows_the_release_for_which_it_was_made(tmp_path: Path):
    """Its checkpoint has no queue offset for a minute, and abort.bak alone fits any release since 5.0."""
    for release in NAMES:
        with contextlib.closing(
            LabStore.create(
                tmp_path / release, MessageStoreConfig(mapped_file_size_commit_log=1 << 16), release=release
            )
        ) as lab:
            lab.store.put_message(Message("TopicA", b"first", queue_id=0))
            assert written_by(StorePaths(lab.root), RealDisk()) == release


def test_a_later_release_that_continued_a_lab_store_is_named(tmp_path: Path):
    marker = tmp_path / "storescope-lab.json"
    file_bytes = {"rocksdbstore/OPTIONS-000007": options("8.4.4"), "checkpoint": encode(Checkpoint(9, 9, 9))}
    for text, release in (('{"lab":1,"like":"5.4"}', "5.5"), ("[]", "5.5"), ('{"lab":1,"like":"5.9"}', "5.5")):
        files = Files(tmp_path / "store", {**file_bytes, str(marker): text.encode()})
        written = guess(StorePaths(tmp_path / "store"), files)
        assert written is not None
        assert written.release == release


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("clean-5.5.1", "5.5"),
        ("broker-orders-5.5.1", "5.5"),
        ("broker-crash-5.5.1", "5.5"),
        ("rocks-5.5.1", "5.5"),
        ("crash-5.4.0", "5.4"),
        ("broker-transactions-5.4.0", "5.4"),
        ("clean-5.3.3", "5.3"),
        ("clean-4.9.8", "4.9"),
    ],
)
def test_stores_of_real_releases_are_distinguished(golden, name, release):
    assert written_by(StorePaths(golden(name)), RealDisk()) == release


def test_a_new_store_is_of_the_newest_release(tmp_path):
    assert written_by(StorePaths(tmp_path / "absent"), RealDisk()) == "5.5"
