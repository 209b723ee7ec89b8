"""Errors say where: the file, the offset, the character."""

from __future__ import annotations

import errno
import pickle
import socket
import ssl

import pytest

from engine.errors import (
    BadFilter,
    CannotRead,
    CorruptUnit,
    StoreClosed,
    StoreError,
    StoreLocked,
    UsageError,
    cause_of,
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreError("expected a store"), "expected a store"),
        (CorruptUnit("no unit", offset=1_234_567), "at offset 1,234,567: no unit"),
        (CannotRead("no rights", file="/store/commitlog/0"), "/store/commitlog/0: no rights"),
        (CorruptUnit("no unit", file="0", offset=5), "0 at offset 5: no unit"),
        (BadFilter("no such field", 4, 5), "filter, character 5: no such field"),
    ],
)
def test_what_is_said_begins_with_the_place(error, said):
    assert str(error) == said


def test_a_lock_knows_who_holds_it():
    assert StoreLocked("somebody has it open", pid=4711).pid == 4711


def test_whose_fault_it_is_can_be_told_apart():
    assert issubclass(BadFilter, UsageError)
    assert not issubclass(CannotRead, UsageError)
    assert all(issubclass(item, StoreError) for item in (BadFilter, CannotRead, StoreClosed, StoreLocked))


def test_an_error_comes_through_a_pipe_as_it_was():
    for error in (CorruptUnit("no unit"), CannotRead("no rights")):
        second_record = pickle.loads(pickle.dumps(error))
        assert (type(second_record), second_record.what) == (type(error), error.what)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (OSError(errno.ENOSPC, "No space left on device", "/a/file"), "/a/file: No space left on device"),
        (ssl.SSLError(1, "[SSL] certificate verify failed"), "[SSL] certificate verify failed"),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] Connect call "
                "failed ('127.0.0.1', 1)"
            ),
            "Connection refused",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ConnectionError("the master closed it"), "the master closed it"),
        (TimeoutError(), "no answer"),
    ],
)
def test_the_cause_is_said_in_the_systems_words_without_its_number(error, said):
    assert cause_of(error) == said
