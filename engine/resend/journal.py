"""The journal of sends: a file of JSON lines, of which each is on the disk before anything goes on.

A line "sending" is written before a message is sent, and one with the result after it. A message with the first line
alone, after a crash or Ctrl-C, may have arrived. Such a message is only sent again on request.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from engine import system
from engine.errors import CannotRead, StoreError, StoreLocked, UsageError
from engine.sentences import sentence

SENDING, SENT, REFUSED, UNKNOWN = "sending", "sent", "refused", "unknown"
"""States of a message in a journal."""
_HEAD = "resendJournal"
_VERSION = 1
_HEAD_START = b'{"type":"resendJournal"'
_STATES = frozenset({SENDING, SENT, REFUSED, UNKNOWN})


class Identity(NamedTuple):
    """A stored message. The store time tells messages of different stores apart that have no unique key.

    ``origin`` is the topic to which its producer sent it. Units with the same unique key and origin are copies of one
    message; with another origin they are not: a program that passes a message on keeps its unique key.
    """

    unique_key: str | None
    physical_offset: int
    member: int | None
    store_timestamp: int
    origin: str

    def record(self) -> dict[str, Any]:
        """Return the fields of a line."""
        return {
            "uniqueKey": self.unique_key,
            "physicalOffset": self.physical_offset,
            "member": self.member,
            "storeTimestamp": self.store_timestamp,
            "origin": self.origin,
        }


class Journal:
    """The messages that were sent so far. ``create`` and every line write; reading changes nothing.

    A journal of which the file is absent is empty until :meth:`create`. Raises :class:`StoreLocked` if another
    process writes it, :class:`UsageError` if the file is something else, :class:`StoreError` if it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._states: dict[Identity, str] = {}
        self._by_key: dict[tuple[str, str], set[Identity]] = {}
        self._keys: set[str] = set()
        self._end = 0
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDWR | system.OPEN_FLAGS)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CannotRead(error.strerror or str(error), file=str(path)) from error
        try:
            self._lock()
            self._end = self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _traceback: TracebackType | None) -> None:
        self.close()

    @property
    def exists(self) -> bool:
        """True if the file is there."""
        return self._descriptor >= 0

    def state(self, identity: Identity) -> str | None:
        """Return the last state of a message: SENT, REFUSED or UNKNOWN; None if the journal does not have it."""
        state = self._states.get(identity)
        return UNKNOWN if state == SENDING else state

    def has_key(self, unique_key: str | None) -> bool:
        """Return True if the journal has a message with this unique key, whatever became of it."""
        return unique_key in self._keys

    def message_state(self, identity: Identity) -> str | None:
        """Return SENT if a message or a copy of it was sent, UNKNOWN if it may have been, None if not."""
        states = {self.state(identity)}
        if identity.unique_key is not None:
            copies = self._by_key.get((identity.unique_key, identity.origin), ())
            states.update(self.state(copy) for copy in copies)
        return SENT if SENT in states else UNKNOWN if UNKNOWN in states else None

    def create(self, store: str) -> None:
        """Create the file if it is absent, and cut off a line that a crash left incomplete."""
        head = {"type": _HEAD, "version": _VERSION, "store": store}
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, self._end)
            os.lseek(self._descriptor, self._end, os.SEEK_SET)
            if not self._end:
                self._write(head)
            return
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.OPEN_FLAGS, 0o644)
        except FileExistsError:
            raise StoreLocked(sentence("another process has made this journal just now"), file=str(self.path)) from None
        except OSError as error:
            raise CannotRead(error.strerror or str(error), file=str(self.path)) from error
        self._lock()
        self._write(head)
        system.sync_folder(self.path.parent)

    def write(self, state: str, identity: Identity, topic: str, **details: object) -> None:
        """Write the state of a message, and return when it is on the disk."""
        self._write({"type": state, **identity.record(), "topic": topic, **details})
        self._note(state, identity)

    def close(self) -> None:
        """Release the file. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _lock(self) -> None:
        if not system.lock_file(self._descriptor):
            raise StoreLocked(sentence("another process is sending with this journal"), file=str(self.path))

    def _write(self, record: Mapping[str, object]) -> None:
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)

    def _note(self, state: str, identity: Identity) -> None:
        self._states[identity] = state
        if identity.unique_key is not None:
            self._keys.add(identity.unique_key)
            self._by_key.setdefault((identity.unique_key, identity.origin), set()).add(identity)

    def _read(self) -> int:
        """Read all lines, and return the end of the last complete one."""
        position = 0
        with open(self._descriptor, "rb", closefd=False) as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n") and (number or line.startswith(_HEAD_START)):
                    return position  # the process or the machine stopped while it was written
                try:
                    self._take(json.loads(line), is_head=number == 0)
                except (ValueError, KeyError, TypeError):
                    if number == 0:
                        raise UsageError(sentence("expected a journal of resend"), file=str(self.path)) from None
                    raise StoreError(
                        sentence("expected a line of a journal of resend"), file=str(self.path), offset=position
                    ) from None
                position += len(line)
        return position

    def _take(self, record: Any, *, is_head: bool) -> None:
        if is_head:
            if record["type"] != _HEAD or record["version"] != _VERSION:
                raise ValueError(record["type"])
            return
        key, member = record["uniqueKey"], record["member"]
        identity = Identity(
            None if key is None else str(key),
            int(record["physicalOffset"]),
            None if member is None else int(member),
            int(record["storeTimestamp"]),
            str(record["origin"]),
        )
        if record["type"] not in _STATES:
            raise ValueError(record["type"])
        self._note(str(record["type"]), identity)
