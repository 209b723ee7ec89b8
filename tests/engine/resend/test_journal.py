"""The journal of sends: what it remembers, what a crash leaves in it, and which files it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import StoreError, StoreLocked, UsageError
from engine.resend.journal import REFUSED, SENDING, SENT, UNKNOWN, Identity, Journal


def identity(number: int, key: str | None = "U") -> Identity:
    return Identity(None if key is None else f"{key}{number}", number * 100, None, 1_700_000_000_000 + number, "Orders")


def test_each_state_is_there_after_it_was_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    with Journal(path) as journal:
        assert not journal.exists
        assert not path.exists()
        journal.create("/store")
        for number, state in enumerate((SENT, REFUSED, UNKNOWN)):
            journal.write(SENDING, identity(number), "Orders")
            journal.write(state, identity(number), "Orders", status="x")
        journal.write(SENDING, identity(3), "Orders")
        journal.write(SENDING, identity(4, key=None), "Orders")
    with Journal(path) as journal:
        states = [journal.state(identity(number)) for number in range(4)]
        assert states == [SENT, REFUSED, UNKNOWN, UNKNOWN]
        assert journal.state(identity(4, key=None)) == UNKNOWN
        assert journal.state(identity(5)) is None
        copies = [identity(number)._replace(physical_offset=7) for number in range(3)]
        assert [journal.message_state(copy) for copy in copies] == [SENT, None, UNKNOWN]
        assert journal.message_state(copies[0]._replace(origin="Payments")) is None
        assert [journal.has_key(key) for key in ("U1", "U9", None)] == [True, False, False]


@pytest.mark.parametrize("kept_bytes", range(1, 60, 7))
def test_a_line_that_a_crash_cut_off_counts_as_not_written(tmp_path: Path, kept_bytes: int) -> None:
    path = tmp_path / "sent.jsonl"
    with Journal(path) as journal:
        journal.create("/store")
        head = path.read_bytes()
        journal.write(SENDING, identity(1), "Orders")
        first = path.read_bytes()
        journal.write(SENT, identity(1), "Orders")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(first) + kept_bytes])
    with Journal(path) as journal:
        assert journal.state(identity(1)) == UNKNOWN
        journal.create("/store")
        journal.write(SENT, identity(2), "Orders")
    assert path.read_bytes().startswith(first + b'{"type":"sent","uniqueKey":"U2"')
    path.write_bytes(head[:-kept_bytes] if kept_bytes < 30 else b"")
    with Journal(path) as journal:
        journal.create("/store")
    assert path.read_bytes() == head


def test_two_processes_do_not_send_with_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    with Journal(path) as first, Journal(path) as second:
        first.create("/store")
        with pytest.raises(StoreLocked):
            second.create("/store")
        with pytest.raises(StoreLocked):
            Journal(path)


def test_other_files_are_refused_and_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "other"
    for content in (b"hello\n", b"hello", b'{"type":"sent"}\n', b'{"type":"resendJournal","version":9}\n'):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="expected a journal"):
            Journal(path)
        assert path.read_bytes() == content
    with Journal(tmp_path / "sent.jsonl") as journal:
        journal.create("/store")
    path = tmp_path / "sent.jsonl"
    head = path.read_bytes()
    path.write_bytes(head + b'{"type":"seen"}\n' + head)
    with pytest.raises(StoreError) as error:
        Journal(path)
    assert error.value.offset == len(head)
