"""A log of ``writeWithoutMmap``: behind its last message are remainders of older ones, up to the end of the page."""

from __future__ import annotations

import shutil
from pathlib import Path

import agree
import pytest
from planted_faults import patch

pytestmark = pytest.mark.golden
STORE = "without-mmap-5.5.1"
END = 230_757
LAST_FILE = f"{196_608:020d}"


@pytest.fixture
def store(golden, tmp_path) -> Path:
    root = tmp_path / "store"
    shutil.copytree(golden(STORE), root, ignore=shutil.ignore_patterns("timerwheel"))
    return root


def findings_of(root: Path) -> list[dict]:
    return [record for record in agree.records_of("check", root) if record["type"] == "finding"]


def test_remainders_of_older_messages_are_a_note(golden):
    """check said that the last message was written only in part, of a store that a real broker had closed cleanly."""
    (finding,) = findings_of(golden(STORE))
    assert (finding["id"], finding["severity"], finding["offset"]) == ("CL06", "note", END)
    assert "121 bytes after it, in the same page, are the remainder of older messages" in finding["message"]


def test_every_message_is_read(golden, golden_account):
    for line in golden_account(STORE, "truth.jsonl.xz"):
        if line["offset"] % 50 == 0:
            got = agree.records_of("get", golden(STORE), "Orders", line["queueId"], line["offset"], "--max", 1)[-1]
            assert (got["queueOffset"], got["uniqueKey"], got["keys"]) == (line["offset"], line["msgId"], [line["key"]])


def test_after_a_crash_they_may_be_a_torn_message(store):
    (store / "abort").touch()
    (finding,) = [finding for finding in findings_of(store) if finding["id"] == "CL06"]
    assert finding["severity"] == "warn"


@pytest.mark.parametrize(("position", "data"), [(0, b"no message has this"), (4000, b"on another page")])
def test_other_bytes_behind_the_end_are_a_warning(position, data, store):
    patch(store / "commitlog" / LAST_FILE, END - int(LAST_FILE) + position, data)
    (finding,) = [finding for finding in findings_of(store) if finding["id"] == "CL06"]
    assert finding["severity"] == "warn"
