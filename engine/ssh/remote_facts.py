"""What the file server says about a file: the fields of ``os.stat`` as a list of integers, or a problem."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from engine.mapped.stand_in_disk import ListedEntry
from engine.sentences import sentence

Facts = list[Any]
"""Mode, inode, device, links, user, group, size, times of access, change and status in ns, blocks of 512 bytes."""
Identity = tuple[int, int]
"""Device and inode."""
_FACTS = 11
NOT_FITTING = sentence("the other machine sent an answer that does not fit")


@contextlib.contextmanager
def fitting_answer() -> Iterator[None]:
    """Turn what goes wrong while an answer is taken apart into an ``OSError``."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise OSError(errno.EIO, NOT_FITTING) from error


def are_facts(facts: object) -> bool:
    """Return True for a list that has the form of facts."""
    return isinstance(facts, list) and len(facts) == _FACTS and all(isinstance(fact, int) for fact in facts)


def identity_of(facts: Facts) -> Identity:
    """Return device and inode."""
    return facts[2], facts[1]


def stat_of(facts: Facts) -> os.stat_result:
    """Return what :func:`os.stat` would there. Raises ``OSError`` if these are no facts."""
    if not are_facts(facts):
        raise OSError(errno.EIO, NOT_FITTING)
    mode, inode, device, links, user, group, size, accessed, modified, changed, blocks = facts
    times = {"a": accessed, "m": modified, "c": changed}
    values = (mode, inode, device, links, user, group, size, *(value // 10**9 for value in times.values()))
    exact = {f"st_{name}time": value / 10**9 for name, value in times.items()}
    nanoseconds = {f"st_{name}time_ns": value for name, value in times.items()}
    return os.stat_result(values, {**exact, **nanoseconds, "st_blksize": 4096, "st_blocks": blocks, "st_rdev": 0})


def problem_error(problem: dict[str, Any], path: str) -> OSError:
    """Return the error that the other machine met at ``path``."""
    number = getattr(errno, str(problem.get("error")), errno.EIO)
    return OSError(number, os.strerror(number) if number != errno.EIO else str(problem.get("text")), path)


class RemoteEntry(ListedEntry):
    """A file or folder of the other machine.

    ``target`` is None where it is no link, else the facts of what the link leads to, or the problem with it.
    """

    def __init__(self, folder: str, name: str, facts: Facts, target: Facts | dict[str, Any] | None) -> None:
        super().__init__(folder, name)
        self.facts = facts
        self.target = target

    def in_folder(self, folder: str) -> RemoteEntry:
        """Return the entry with the folder's path as its reader spells it."""
        return RemoteEntry(folder, self.name, self.facts, self.target)

    def inode(self) -> int:
        return int(self.facts[1])

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if not follow_symlinks or self.target is None:
            return stat_of(self.facts)
        if isinstance(self.target, dict):
            raise problem_error(self.target, self.path)
        return stat_of(self.target)
