"""Error messages name the place: the file, the offset, the character."""

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
    ("error", "message"),
    [
        (StoreError("expected a store"), "expected a store"),
        (CorruptUnit("no unit", offset=1_234_567), "at offset 1,234,567: no unit"),
        (CannotRead("no rights", file="/store/commitlog/0"), "/store/commitlog/0: no rights"),
        (CorruptUnit("no unit", file="0", offset=5), "0 at offset 5: no unit"),
        (BadFilter("no such field", 4, 5), "filter, character 5: no such field"),
    ],
)
def test_a_message_begins_with_the_place(error, message):
    assert str(error) == message


def test_a_lock_error_names_the_holder():
    assert StoreLocked("somebody has it open", pid=4711).pid == 4711


def test_error_classes_show_whose_fault_it_is():
    assert issubclass(BadFilter, UsageError)
    assert not issubclass(CannotRead, UsageError)
    assert all(issubclass(item, StoreError) for item in (BadFilter, CannotRead, StoreClosed, StoreLocked))


def test_an_error_travels_through_a_pipe_unchanged():
    for error in (CorruptUnit("no unit"), CannotRead("no rights")):
        second_record = pickle.loads(pickle.dumps(error))
        assert (type(second_record), second_record.what) == (type(error), error.what)


@pytest.mark.parametrize(
    ("error", "message"),
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
def test_the_cause_is_the_systems_message_without_its_number(error, message):
    assert cause_of(error) == message
