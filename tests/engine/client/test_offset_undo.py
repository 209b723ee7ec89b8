"""Undo files of offsets: what they hold, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.client.offset_moves import OffsetMove
from engine.client.offset_undo import read_undo, undo_name, undo_record, write_undo
from engine.client.routes import MessageQueue
from engine.errors import StoreError, UsageError


def test_a_file_has_the_old_offsets_of_queues_that_change(tmp_path: Path) -> None:
    queues = [MessageQueue("Orders", "broker-a", number) for number in range(3)]
    moves = [
        OffsetMove(queues[0], 6, 0, 0, 9),
        OffsetMove(queues[1], None, 4, 0, 9),
        OffsetMove(queues[2], 5, 5, 0, 9),
    ]
    record = undo_record("resetOffsetByTime", ["127.0.0.1:9876"], "billing", moves)
    write_undo(tmp_path / "undo.json", record)
    undo = read_undo(tmp_path / "undo.json")
    assert [(row["queueId"], row["offset"]) for row in undo["offsets"]] == [(0, 6), (1, None)]
    assert (undo["group"], undo["nameServers"]) == ("billing", ["127.0.0.1:9876"])
    with pytest.raises(FileExistsError):
        write_undo(tmp_path / "undo.json", record)


@pytest.mark.parametrize("text", ["", "{}", '{"type": "offsetUndo", "version": 2}', '{"type": "offsetUndo"'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "undo.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="expected an undo file of offsets"):
        read_undo(path)
    with pytest.raises(StoreError):
        read_undo(tmp_path / "none.json")


def test_a_name_has_no_characters_of_a_path() -> None:
    name = undo_name("../%RETRY%billing")
    assert "/" not in name
    assert name.endswith(".json")
