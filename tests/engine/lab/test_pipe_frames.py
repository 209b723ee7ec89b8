"""Frames between processes: number and kind are readable even if the content is not."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
from worker_tasks import CannotUnpack

from engine.errors import BadFilter, StoreError
from engine.lab.pipe_frames import NotSendable, pack, portable, receive


def test_a_frame_round_trips():
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    ours.send_bytes(pack(1 << 60, "items", [1], {"订": b"\0"}))
    ours.send_bytes(pack(7, "end"))
    item, two = receive(theirs), receive(theirs)
    assert (item.number, item.kind, item.content()) == (1 << 60, "items", ([1], {"订": b"\0"}))
    assert (two.number, two.kind, two.content()) == (7, "end", ())
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs)


def test_a_frame_with_unreadable_content_still_has_its_number():
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    ours.send_bytes(pack(9, "end", CannotUnpack()))
    frame = receive(theirs)
    assert (frame.number, frame.kind) == (9, "end")
    with pytest.raises(NotSendable, match="cannot be unpacked: ValueError"):
        frame.content()


@pytest.mark.parametrize("content", [lambda: 1, threading.Lock()], ids=["function", "lock"])
def test_content_that_cannot_be_packed_is_an_error(content):
    with pytest.raises(NotSendable, match="cannot be packed"):
        pack(1, "end", content)


class UnknownError(Exception):
    def __init__(self, first_number: int, second_number: int) -> None:
        super().__init__(f"{first_number} and {second_number}")


def test_errors_travel_unchanged_or_as_text():
    plain, deep = ValueError("x"), StoreError("x", file="f")
    assert (portable(plain), portable(deep)) == (plain, deep)
    assert isinstance(portable(UnknownError(1, 2)), NotSendable)
    assert [str(portable(e)) for e in (UnknownError(1, 2), SystemExit(3), KeyboardInterrupt())] == [
        "UnknownError: 1 and 2",
        "SystemExit: 3",
        "KeyboardInterrupt",
    ]
    assert "filter, character 3" in str(portable(BadFilter("odd", 2)))
