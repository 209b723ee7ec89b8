"""Frames between processes: number and kind can be read whatever became of the content."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
from worker_tasks import CannotUnpack

from engine.errors import BadFilter, StoreError
from engine.lab.pipe_frames import CannotTravel, pack, portable, receive


def test_a_frame_comes_as_it_was_packed():
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    ours.send_bytes(pack(1 << 60, "items", [1], {"订": b"\0"}))
    ours.send_bytes(pack(7, "end"))
    item, two = receive(theirs), receive(theirs)
    assert (item.number, item.kind, item.content()) == (1 << 60, "items", ([1], {"订": b"\0"}))
    assert (two.number, two.kind, two.content()) == (7, "end", ())
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs)


def test_content_that_cannot_be_unpacked_still_has_its_number():
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    ours.send_bytes(pack(9, "end", CannotUnpack()))
    frame = receive(theirs)
    assert (frame.number, frame.kind) == (9, "end")
    with pytest.raises(CannotTravel, match="cannot be unpacked: ValueError"):
        frame.content()


@pytest.mark.parametrize("what", [lambda: 1, threading.Lock()], ids=["function", "lock"])
def test_content_that_cannot_be_packed_is_said(what):
    with pytest.raises(CannotTravel, match="cannot be packed"):
        pack(1, "end", what)


class UnknownError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_errors_travel_as_they_are_or_in_words():
    plain, deep = ValueError("x"), StoreError("x", file="f")
    assert (portable(plain), portable(deep)) == (plain, deep)
    assert isinstance(portable(UnknownError(1, 2)), CannotTravel)
    assert [str(portable(e)) for e in (UnknownError(1, 2), SystemExit(3), KeyboardInterrupt())] == [
        "UnknownError: 1 and 2",
        "SystemExit: 3",
        "KeyboardInterrupt",
    ]
    assert "filter, character 3" in str(portable(BadFilter("odd", 2)))
