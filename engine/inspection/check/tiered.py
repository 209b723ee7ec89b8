"""Checks whether the files of tiered storage are there and long enough (TS01; docs/formats/tiered.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import plural, sentence
from engine.store.tiered import TABLE, TieredStore

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

_MAX_LISTED = 20


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """TS01. Raises :class:`CannotRead`. Yields nothing while a broker runs, because it changes these files."""
    tiered = store.tiered
    if store.paths is None:
        return
    if tiered is None:
        folder = store.tiered_folder_without_table
        if folder is not None:
            text = sentence(
                "{table} is gone or cannot be parsed, and {folder} has files of tiered storage: a broker does not "
                "find the messages in them",
                table=TABLE,
                folder=folder.name,
            )
            evidence = {HAPPENED: sentence("the table of the files in tiered storage is lost")}
            yield rules.TS01.finding(text, str(store.paths.config / TABLE), None, evidence, kind="table")
        return
    if tiered.folder is None:
        text = plural(
            "The broker has {n:,} queue in tiered storage; its files are not here and not looked at",
            "The broker has {n:,} queues in tiered storage; their files are not here and not looked at",
            n=len(tiered.queues),
        )
        yield rules.TS01.finding(text, str(store.paths.config / TABLE), None, {}, kind="elsewhere")
    elif store.lock_state != "held":
        yield from _lost_files(tiered)


def _lost_files(tiered: TieredStore) -> Iterator[Finding]:
    lost: list[str] = []
    first_fault = ""
    for path, kind, segment in tiered.segments():
        length = tiered.file_length(path, kind, segment)
        if length is not None and length >= segment.size:
            continue
        name = f"{path}/{kind}/{segment.start_offset}"
        words = sentence("{name} is missing", name=name)
        if length is not None:
            words = sentence("{name} has {n:,} of {size:,} bytes", name=name, n=length, size=segment.size)
        first_fault = first_fault or words
        lost.append(name)
    if lost:
        text = plural(
            "{n:,} file of tiered storage is missing or cut: {first}",
            "{n:,} files of tiered storage are missing or cut, the first is: {first}",
            n=len(lost),
            first=first_fault,
        )
        yield rules.TS01.finding(text, str(tiered.folder), None, {"files": lost[:_MAX_LISTED]})
