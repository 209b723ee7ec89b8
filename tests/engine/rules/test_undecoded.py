"""Undecoded parts of a store, recognised by the contents of its folders, without opening the store."""

from __future__ import annotations

import struct

import pytest

from engine.rules.undecoded import find_needed_part, find_undecoded, part_that_forbids_writing

CURRENT = b"MANIFEST-000005\n"


class Folders:
    """Files by their path below the store, with their first bytes."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("__", "/"): data for name, data in files.items()}

    def put(self, folder: str, *, tables: int = 1, log: bytes = b"") -> Folders:
        """Add a RocksDB."""
        self.files |= {f"{folder}/CURRENT": CURRENT, f"{folder}/MANIFEST-000005": b"m" * 30}
        self.files |= {f"{folder}/{number:06d}.sst": b"s" * 700 for number in range(7, 7 + tables)}
        self.files[f"{folder}/000004.log"] = log
        return self

    def entries(self, folder: str):
        below = [
            name[len(folder) + 1 if folder else 0 :]
            for name in self.files
            if not folder or name.startswith(f"{folder}/")
        ]
        folders = {name.split("/")[0] for name in below if "/" in name}
        yield from ((name, 0, True) for name in sorted(folders))
        for name in below:
            if "/" not in name:
                yield name, len(self.files[f"{folder}/{name}" if folder else name]), False

    def head(self, file: str, size: int) -> bytes:
        return self.files.get(file, b"")[:size]


@pytest.mark.parametrize(
    ("folder", "subjects"),
    [
        ("consumequeue", {"queues"}),
        ("consumequeue_rocksdb", {"queues"}),
        ("config/topics", {"topics"}),
        ("config/subscriptionGroups", {"groups"}),
        ("config/consumerOffsets", {"offsets"}),
        ("config/metadata", {"topics", "groups", "offsets"}),
        ("config/rdb", {"topics", "groups", "offsets"}),
        ("rocksdbstore", {"index", "timer", "transactions"}),
        ("kvStore", {"pop"}),
        ("a/folder/of/others", set()),
    ],
)
def test_a_rocksdb_is_recognised_in_any_folder(folder, subjects):
    (part,) = find_undecoded(Folders().put(folder))
    assert (part.folder, part.format, part.subjects) == (folder, "RocksDB", subjects)
    assert part_that_forbids_writing([part]) is part
    for subject in subjects:
        assert find_needed_part([part], subject) is part
        assert f"({folder}/)" in part.reason(subject)


@pytest.mark.parametrize("folder", ["rocksdbstore", "kvStore", "a/folder/of/others"])
def test_an_empty_rocksdb_is_ignored(folder):
    (part,) = find_undecoded(Folders().put(folder, tables=0))
    assert not part.holds_data
    assert part_that_forbids_writing([part]) is None
    assert not any(find_needed_part([part], subject) for subject in part.subjects)


def test_a_nonempty_write_ahead_log_counts_as_content():
    (part,) = find_undecoded(Folders().put("rocksdbstore", tables=0, log=b"x"))
    assert part.holds_data


def test_queue_and_table_databases_count_even_if_empty():
    """The broker keeps them in memory until they are flushed."""
    for folder in ("consumequeue", "config/rdb"):
        (part,) = find_undecoded(Folders().put(folder, tables=0))
        assert part_that_forbids_writing([part]) is part


def manifest_of(*families: str) -> bytes:
    """Return a manifest that adds these column families after ``default``."""
    edits = [b"\x01\x01c"]
    for number, name in enumerate(families, 1):
        edits.append(bytes([0xC8, 0x01, number, 0xC9, 0x01, len(name)]) + name.encode())
    return b"".join(struct.pack("<IHB", 0, len(edit), 1) + edit for edit in edits)


@pytest.mark.parametrize(
    ("folder", "families", "subjects"),
    [
        ("elsewhere", ("offset",), {"queues"}),
        ("elsewhere", ("popState",), {"pop"}),
        ("elsewhere", ("timer", "trans"), {"index", "timer", "transactions"}),
        ("elsewhere", ("kvDataVersion",), {"topics", "groups", "offsets"}),
        ("config/topics", ("kvDataVersion", "forbidden"), {"topics"}),
        ("config/consumerOffsets", ("kvDataVersion", "forbidden"), {"offsets"}),
        (
            "config/metadata",
            ("topic", "topicVersion", "subscriptionGroup", "consumerOffset"),
            {"topics", "groups", "offsets"},
        ),
    ],
)
def test_column_families_identify_a_rocksdb(folder, families, subjects):
    """A broker of 5.3.3 has the family ``forbidden`` in the databases of topics and offsets, too. These were taken for
    group databases.
    """
    folders = Folders().put(folder)
    folders.files[f"{folder}/MANIFEST-000005"] = manifest_of(*families)
    (part,) = find_undecoded(folders)
    assert part.subjects == subjects


def test_file_queues_beside_a_rocksdb_are_used_if_they_apply():
    folders = Folders().put("consumequeue_rocksdb")
    folders.files["consumequeue/Orders/0/00000000000000000000"] = b"e" * 20
    (part,) = find_undecoded(folders)
    assert part.beside_files
    assert find_needed_part([part], "queues", files_count=True) is None
    assert find_needed_part([part], "queues", files_count=False) is part
    assert find_needed_part([part], "queues", files_count=None) is part
    assert part_that_forbids_writing([part]) is part


def test_a_copy_of_another_store_below_the_root_is_no_part_of_this_one():
    folders = Folders().put("backup/monday/consumequeue")
    folders.files["backup/monday/commitlog/00000000000000000000"] = b"u"
    assert find_undecoded(folders) == []


def test_a_store_of_files_has_no_undecoded_parts():
    assert find_undecoded(Folders(commitlog__00000000000000000000=b"u", config__CURRENT=b"no manifest")) == []


def test_compacted_messages_are_a_part_as_soon_as_there_is_one():
    path = "compaction__compactionLog__Prices__1__00000000000000000000"
    assert find_undecoded(Folders(**{path: b"", "compaction__position-checkpoint": b"{}"})) == []
    (part,) = find_undecoded(Folders(**{path: b"unit"}))
    assert part.format == "compaction log"
    assert part_that_forbids_writing([part]) is part
