"""A mend that a power loss ends: the store is wholly mended, or an undo brings back every byte, time and name.

The power fails after each call of the system. Of what was not synced any part is lost: pages, sectors, names, lengths
and times (:mod:`lost_writes`). Then the undo is made, and the power fails in it, too. A few of the moments, unless
``--power-runs`` asks for more than one run: then all of them, so many times.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from every_patch import every_kind, write_store
from golden_stores import Fingerprint, changes, fingerprint
from lost_writes import DiskState, WriteRecorder

from engine.mapped import undo
from engine.mapped.backup import BackupDisk, BackupJournal, BackupWriter, find_backups, find_interrupted_change
from engine.patching import patched_disk
from engine.patching.apply import apply_patches

pytestmark = pytest.mark.crash
SHORT_FORM_STATES = 30
KEPT = (0.0, 1.0, None, None)
"""Chances that what is not synced reaches the disk; None for a random one."""


class Mend:
    """A mend of a store with patches of every kind, recorded; ``before`` and ``after`` are what it finds and leaves."""

    def __init__(self, top: Path) -> None:
        self.root = write_store(top / "store")
        patches = every_kind(self.root)
        self.before = fingerprint(self.root)
        self.recorder = WriteRecorder(top)
        with self.recorder.recording():
            writer = BackupWriter(self.root, "repair", [self.root / "commitlog"], rewrites_log=True)
            disk = BackupDisk(writer)
            lock = disk.lock(self.root / "lock")
            apply_patches(self.root, patches, disk)
            lock.release()
            disk.close()
            writer.finish()
        self.after = fingerprint(self.root)

    def backup(self) -> BackupJournal | None:
        backups = find_backups(self.root)
        assert len(backups) <= 1
        return backups[0] if backups else None

    def differs_from(self, expected: Fingerprint) -> list[str]:
        """Return what differs but the lock's file: its text is the same in every store."""
        return [line for line in changes(expected, fingerprint(self.root)) if not line.startswith("lock:")]


@pytest.fixture
def mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mend:
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", 4096)
    monkeypatch.setattr("engine.patching.apply.MAX_IN_MEMORY_BYTES", 4096)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _descriptor: None)  # the recorder notes the calls; the disk is slow
    return Mend(tmp_path)


def cuts(
    states: Iterable[DiskState], request: pytest.FixtureRequest, seed: int
) -> list[tuple[DiskState, float | None, int]]:
    """Return the moments at which the power fails, what reaches the disk, and a seed for each."""
    runs, first = request.config.getoption("--power-runs"), request.config.getoption("--power-first")
    rng = random.Random(seed + first)
    every = [(state, kept, rng.randrange(1 << 30)) for _ in range(runs) for state in states for kept in KEPT]
    return every if runs > 1 else [*rng.sample(every, SHORT_FORM_STATES), *every[-len(KEPT) :]]


def test_a_power_loss_leaves_a_mend_that_is_complete_or_can_be_undone(mend: Mend, request) -> None:
    """The journal said that the mend was complete, and new folders or times of files were not on the disk yet."""
    outcomes = set()
    for state, kept, seed in cuts(mend.recorder.states, request, 1):
        state.put_back(random.Random(seed), kept)
        backup = mend.backup()
        if backup is None:
            outcomes.add("nothing was changed")
            assert mend.differs_from(mend.before) == [], (state.call, seed)
            continue
        if backup.stamps_after is None:
            outcomes.add("interrupted")
            assert find_interrupted_change(mend.root) is not None, "check names it (AB02), and a further mend refuses"
        else:
            outcomes.add("complete")
            assert mend.differs_from(mend.after) == [], (state.call, seed)
        undo.restore(backup, mend.root)
        assert mend.differs_from(mend.before) == [], (state.call, seed)
    assert outcomes == {"nothing was changed", "interrupted", "complete"}


@pytest.mark.parametrize("part", [0.3, 0.8, 1.0], ids=["a third", "nearly all", "complete"])
def test_a_power_loss_during_the_undo_is_undone_again(mend: Mend, request, part: float) -> None:
    """The journal said that everything was restored, and times of files and folders were not on the disk yet."""
    states = mend.recorder.states
    states[round(part * (len(states) - 1))].put_back(random.Random(1), 1.0)
    first_backup = mend.backup()
    assert first_backup is not None
    recorder = WriteRecorder(mend.recorder.top)
    with recorder.recording():
        undo.restore(first_backup, mend.root)
    for state, kept, seed in cuts(recorder.states, request, 2):
        state.put_back(random.Random(seed), kept)
        backup = mend.backup()
        assert backup is not None
        if not backup.undone:
            undo.restore(backup, mend.root)
        assert mend.differs_from(mend.before) == [], (state.call, seed)


def test_a_journal_of_which_a_part_of_the_last_line_is_lost_is_read_without_it(tmp_path: Path) -> None:
    """A power loss left zeros in the last line: the journal could not be read, and nothing could be restored."""
    root = write_store(tmp_path / "store")
    writer = BackupWriter(root, "repair")
    writer.before_change(root / "checkpoint")
    writer.close()
    path = writer.folder / "kept.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"absent":"conf' + bytes(20) + b'ics.json"}\n')
    backup = find_backups(root)[0]
    assert backup.absent == ["lock"]
    undo.restore(backup, root)
    assert find_backups(root)[0].undone
    assert path.read_bytes().startswith(whole + b'{"undo"')
