"""Ext units are written again from the messages; the bits of SQL filters let every message pass."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.codec import cq_ext
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden
EXT = "consumequeue_ext/wide/0"


@pytest.fixture
def root(golden, tmp_path) -> Path:
    return Path(shutil.copytree(golden("multi-queue-ext-5.3.3"), tmp_path / "store"))


def tags(root: Path) -> dict[int, tuple[int, int]]:
    """Return the tag code and store time of the ext unit of each entry of a queue."""
    with open_store(root) as store:
        queue = store.queues.find("wide", 0)
        assert queue is not None
        entries = [entry for entry in queue.entries() if entry.ext is not None]
        return {entry.queue_offset: (entry.ext.tags_code, entry.ext.store_timestamp) for entry in entries}


def findings(root: Path) -> set[str]:
    with open_store(root) as store:
        return {item.id for item in check(store) if isinstance(item, Finding)} & {"CQ09", "CQ15"}


def spoil(root: Path, kind: str) -> None:
    files = sorted((root / EXT).iterdir())
    data = bytearray(files[0].read_bytes())
    match kind:
        case "a unit":
            data[280:290] = bytes(10)
        case "a length beyond the file":
            data[280:282] = b"\x7f\xff"
        case "the file":
            files[0].unlink()
            return
        case "the folder":
            shutil.rmtree(root / EXT)
            return
    files[0].write_bytes(data)


@pytest.mark.parametrize("kind", ["a unit", "a length beyond the file", "the file", "the folder"])
def test_every_entry_leads_to_the_tag_of_its_message_again(root, kind):
    before = tags(root)
    spoil(root, kind)
    assert "CQ15" in findings(root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert findings(root) == set()
    assert tags(root) == before


def test_no_broker_starts_with_a_unit_that_goes_beyond_its_file(root):
    """The plan said that a broker starts; ConsumeQueueExt.recover of 5.5.1 jumped out of the file and ended it."""
    file = min((root / EXT).iterdir())
    assert cq_ext.overrun(file.read_bytes()) is None
    spoil(root, "a length beyond the file")
    assert cq_ext.overrun(file.read_bytes()) == 280
    with open_store(root) as store:
        start = plan(store, "5.3")
    assert (start.will_start, start.blockers[0].finding) == (False, "CQ15")


def test_without_any_file_the_entries_get_the_tag_codes_themselves(root):
    """Nothing shows how long ext files are; a broker does not start with files of another length."""
    before = tags(root)
    shutil.rmtree(root / "consumequeue_ext")
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert findings(root) == set()
    with open_store(root) as store:
        queue = store.queues.find("wide", 0)
        assert queue is not None
        assert {entry.queue_offset: entry.tags_code for entry in queue.entries()} == {
            number: code for number, (code, _) in before.items()
        }


def test_the_configuration_says_how_long_ext_files_are(root, tmp_path):
    before = tags(root)
    shutil.rmtree(root / "consumequeue_ext")
    config = tmp_path / "broker.conf"
    config.write_text("enableConsumeQueueExt=true\nmappedFileSizeConsumeQueueExt=8192\n")
    assert main(["repair", str(root), "--config", str(config), "--apply", "--yes", "--quiet"]) == 0
    assert tags(root) == before
