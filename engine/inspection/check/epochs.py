"""The epoch table of controller mode (CK06, docs/formats/epochs.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from engine.inspection.epochs import EpochTable, read_epochs
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import Finding
from engine.sentences import sentence


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CK06: a table that a broker does not load, rows that go backwards, a term that begins behind the log."""
    table = read_epochs(store)
    if table is None:
        return
    path = str(table.path)
    if table.main.problem:
        yield _not_loaded(table)
    for previous_row, row in pairwise(table.epochs):
        if row.epoch <= previous_row.epoch or row.start_offset <= previous_row.start_offset:
            text = sentence(
                "Term {n:,} from {offset:,} follows term {m:,} from {earlier:,}: the table goes backwards",
                n=row.epoch,
                offset=row.start_offset,
                m=previous_row.epoch,
                earlier=previous_row.start_offset,
            )
            yield catalogue.CK06.finding(text, path, None, {"epoch": row.epoch, "found": row.start_offset}, kind="rows")
    end = store.log.max_offset
    for row in table.epochs:
        if row.start_offset > end:
            text = sentence(
                "Term {n:,} begins at {offset:,}, behind the end of the log, {end:,}",
                n=row.epoch,
                offset=row.start_offset,
                end=end,
            )
            evidence = {"epoch": row.epoch, "expected": end, "found": row.start_offset}
            yield catalogue.CK06.finding(text, path, None, evidence, kind="behind")


def _not_loaded(table: EpochTable) -> Finding:
    main, backup = table.main, table.backup
    if main.stops_start:
        consequence = sentence("a broker in controller mode does not start")
    elif backup is not None and not backup.problem:
        consequence = sentence("a broker uses {file}", file=f"{table.path.name}.bak")
    else:
        consequence = sentence("a broker begins with an empty table")
    text = sentence(
        "{file}: {problem}; {consequence}", file=table.path.name, problem=main.problem, consequence=consequence
    )
    uses_backup = not main.stops_start and backup is not None and not backup.problem
    kind = "backup" if uses_backup else ""
    return catalogue.CK06.finding(text, str(table.path), None, {"found": main.problem}, kind=kind)
