"""The disk that a power loss left, recovered once more beside the store: the same disk gives the same store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.lab.lab_store import LabStore, NotALab
from engine.lab.plug import PlugReport
from engine.lab.pulling import finish_report, pull_the_plug, timed_open
from engine.lab.second_recovery import keep_disk, recover_again

# What the disk kept is recovered again beside the store: the same comes of it, and a change is seen.

TINY_AGAIN = replace(
    MessageStoreConfig(),
    mapped_file_size_commit_log=1 << 16,
    max_message_size=1 << 14,
    mapped_file_size_consume_queue=20 * 40,
    max_hash_slot_num=50,
    max_index_num=200,
)


def recovered(folder: Path) -> tuple[LabStore, PlugReport]:
    """A lab store whose plug was pulled and that was recovered once."""
    lab = LabStore.create(folder, TINY_AGAIN)
    for number in range(300):
        lab.store.put_message(Message(f"T{number % 3}", b"x" * 200, number % 2, keys=f"k{number}"))
        if number == 200:
            lab.store.flush()
    lab.store.wait_dispatched()
    pulled = pull_the_plug(lab, None, [], 3, 0.4)
    keep_disk(folder)
    opened, took = timed_open(folder)
    return opened, finish_report(opened, pulled, took)


def test_the_same_disk_gives_the_same_store_while_the_lab_goes_on(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    assert report.after is not None
    lab.store.put_message(Message("T0", b"meanwhile"))
    again = recover_again(tmp_path / "lab", report)
    assert (again.round, again.same) == (2, True)
    ends = {figure.name: figure.done for figure in again.figures}
    assert ends["endOffset"] == report.after.end_offset < lab.store.positions().wrote
    assert ends["units"] == report.after.units
    assert not (tmp_path / "lab" / "again").exists()
    assert recover_again(tmp_path / "lab", replace(report, again=again)).round == 3
    lab.close()


def test_another_disk_is_seen_in_the_figures(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    log = sorted((tmp_path / "lab" / "kept" / "commitlog").iterdir())[0]
    raw = bytearray(log.read_bytes())
    raw[100] ^= 0xFF  # in the first body: its CRC is wrong, the log ends here
    log.write_bytes(raw)
    again = recover_again(tmp_path / "lab", report)
    assert not again.same
    assert next(figure.done for figure in again.figures if figure.name == "endOffset") == 0
    lab.close()


def test_nothing_is_recovered_again_before_it_was_recovered(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    lab.close()
    with pytest.raises(UsageError, match="there is no recovery yet"):
        recover_again(tmp_path / "lab", replace(report, after=None))
    (tmp_path / "other").mkdir()
    with pytest.raises(NotALab):
        keep_disk(tmp_path / "other")
