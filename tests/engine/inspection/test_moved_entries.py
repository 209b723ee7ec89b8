"""Messages that are only in tiered storage are listed with their places there (``tests/golden/tiered-5.5.1``)."""

from __future__ import annotations

from pathlib import Path

import agree
import pytest
from tiered_stores import drop_first_queue_files, move_tiered_storage_out, options_for

from engine.inspection.get_message import get_message
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden
STORE = "tiered-5.5.1"


def test_queue_lists_what_is_only_in_tiered_storage_with_its_place(golden, tmp_path):
    """It listed entries of deleted log files as if their messages were gone, and none of deleted queue files."""
    root = drop_first_queue_files(golden(STORE), tmp_path)
    entries = agree.records_of("queue", root, "Orders", 0, "--resolve")
    assert [entry["queueOffset"] for entry in entries] == list(range(120))
    moved = [entry for entry in entries if entry["state"] == "moved"]
    assert len(moved) == 111
    assert [entry["physicalOffset"] is None for entry in moved] == [True] * 40 + [False] * 71
    assert {entry["verdict"] for entry in entries} == {"ok"}
    with open_store(root) as store:
        unit = get_message(store, "Orders", 0, 45, 1).units[0]
    file = Path(moved[45]["tieredFile"]).read_bytes()
    assert file[moved[45]["tieredPosition"] :].startswith(unit.size.to_bytes(4, "big"))
    _, out, _ = agree.command("queue", root, "Orders", 0, "--from", "119")
    assert f"offsets 0 to 120; tiered storage has 0 to 120: {root / 'tiered'}" in out


def test_queue_says_what_is_moved_if_the_files_are_elsewhere(golden, tmp_path):
    outside = move_tiered_storage_out(golden(STORE), tmp_path)
    first, *_ = agree.records_of("queue", outside, "Orders", 0)
    assert (first["state"], first["size"], first["tieredFile"]) == ("moved", 362, None)
    first, *_ = agree.records_of("queue", outside, "Orders", 0, *options_for(outside))
    assert first["tieredFile"].startswith(str(outside.parent / "elsewhere"))
