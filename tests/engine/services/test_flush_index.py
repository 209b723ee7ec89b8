"""Index files are flushed one after the other; a full one advances the checkpoint."""

from __future__ import annotations

from typing import Any, cast

from engine.services.flush_index import IDLE_MS, FlushIndex


class Checkpoint:
    def __init__(self) -> None:
        self.index, self.flushed = 0, []

    def flush(self) -> None:
        self.flushed.append(self.index)


class File:
    def __init__(self, end_timestamp, *, is_full=True, error=None) -> None:
        self.end_timestamp, self.is_full, self.error = end_timestamp, is_full, error
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        if self.error is not None:
            raise self.error


def service(checkpoint):
    return FlushIndex(cast("Any", checkpoint))


def test_without_a_thread_a_file_is_flushed_at_once():
    checkpoint, file = Checkpoint(), File(5)
    service(checkpoint).take(file)
    assert (file.flushes, checkpoint.flushed) == (1, [5])


def test_a_file_that_is_not_full_does_not_advance_the_checkpoint():
    checkpoint = Checkpoint()
    service(checkpoint).take(File(5, is_full=False))
    assert checkpoint.flushed == []


def test_with_a_thread_files_wait_for_its_rounds():
    checkpoint, rings, files = Checkpoint(), [], [File(5), File(7)]
    flush_index = service(checkpoint)
    flush_index.ring = lambda: rings.append(1)
    for file in files:
        flush_index.take(file)
    assert (len(rings), [file.flushes for file in files]) == (2, [0, 0])
    assert flush_index.step() == 0.0
    assert flush_index.step() == IDLE_MS
    assert checkpoint.flushed == [5, 7]


def test_after_a_failure_the_checkpoint_stays_behind_the_file_that_failed():
    checkpoint = Checkpoint()
    flush_index = service(checkpoint)
    flush_index.ring = lambda: None
    flush_index.take(File(5, error=OSError(28, "No space left on device")))
    flush_index.take(File(7))
    flush_index.finish()
    assert checkpoint.flushed == []
    assert "No space left" in (flush_index.failure or "")
