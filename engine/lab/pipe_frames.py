"""Frames between two processes of the program over a pipe, with a number and a kind that can be read even if the
content cannot.

A call, what it finds and its end bear the same number. Content that cannot be brought over is an error of that call,
never of the pipe.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from engine import system
from engine.errors import StoreError
from engine.sentences import sentence

_HEAD = struct.Struct(">qB")  # number, bytes of the kind


class NotSendable(StoreError):
    """An argument or a result of a call cannot be sent to the other process."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame; its content is unpacked when it is needed."""

    number: int
    kind: str
    packed: bytes

    def content(self) -> tuple[Any, ...]:
        """Return the arguments of :func:`pack`; raises :class:`NotSendable`."""
        try:
            return tuple(pickle.loads(self.packed))  # noqa: S301 (made by the other end, a process of this program)
        except Exception as error:
            raise NotSendable(
                sentence("what the other process said cannot be unpacked: {words}", words=_words(error))
            ) from error


def pack(number: int, kind: str, *content: object) -> bytes:
    """Return a frame as it is sent; raises :class:`NotSendable`."""
    name = kind.encode("ascii")
    try:
        return _HEAD.pack(number, len(name)) + name + pickle.dumps(content)
    except Exception as error:
        raise NotSendable(
            sentence("what the other process should be told cannot be packed: {words}", words=_words(error))
        ) from error


def receive(pipe: system.PipeEnd) -> Frame:
    """Return the next frame; raises ``EOFError`` or ``OSError`` if the pipe has ended."""
    try:
        raw = pipe.recv_bytes()
    except TypeError as error:  # closed by another thread while this one waited
        raise EOFError from error
    number, length = _HEAD.unpack_from(raw)
    start = _HEAD.size + length
    return Frame(number, raw[_HEAD.size : start].decode("ascii"), raw[start:])


def portable(error: BaseException) -> Exception:
    """Return ``error`` itself if it can be sent over the pipe, else an error with its text."""
    if isinstance(error, Exception):
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 (bytes made in the line itself)
        except Exception:  # noqa: BLE001 (whatever a foreign class does when it is copied)
            return NotSendable(_words(error))
        return error
    return NotSendable(_words(error))


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
