"""A check of a store that is being written: unfinished parts are no fault, and there is no incident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, at_least

LOOKS = 8
WRITER = """
import sys, time
from itertools import count
from pathlib import Path
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
config = MessageStoreConfig(
    mapped_file_size_commit_log=1 << 17, mapped_file_size_consume_queue=2000, max_hash_slot_num=100, max_index_num=400,
    {more}
)
with MessageStore(Path(sys.argv[1]), config) as store:
    for number in count():
        body = b"x" * (number * 37 % 3000)
        store.put_message(Message("Orders", body, number % 3, tags="A", keys=f"k{{number}} every"))
        if number == 300:
            print("writing", flush=True)
        time.sleep(0.001)
"""


@pytest.mark.parametrize("options", ["", "transient_store_pool_enable=True,", "message_index_safe=True,"])
def test_no_finding_is_worse_than_a_note_while_a_store_is_written(tmp_path: Path, options: str) -> None:
    store = tmp_path / "store"
    script = WRITER.format(more=options)
    ends, observed = [], []
    with subprocess.Popen([sys.executable, "-c", script, str(store)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            for _ in range(LOOKS):
                with open_store(store) as opened:
                    *results, summary = check(opened)
                    ends.append(opened.log.max_offset)
                assert summary.incident is None
                observed += [
                    finding
                    for finding in results
                    if isinstance(finding, Finding) and at_least(finding.severity, "warn")
                ]
        finally:
            writer.kill()
    assert ends[0] < ends[-1]
    assert not [(finding.id, finding.message) for finding in observed]
