"""Stores with queues and index built from their splits, in this process or on Spark, and by the engine itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.cli.pipeline_rebuild import facts_of
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.pipeline.defaults import SPLIT_BYTES
from engine.pipeline.files import find_stores
from engine.pipeline.rebuild import Rebuilt, TaskRunner, rebuild
from engine.pipeline.splits import plan
from engine.rebuilding import Rebuilt as Dispatched
from engine.rebuilding import rebuild_beside


@dataclass
class InProcessRunner:
    """Runs tasks one after another, in this process; ``done`` are those that it ran."""

    cores: int = 2
    done: list[Any] = field(default_factory=list)

    def __call__(self, shares: Sequence[Sequence[Any]], work: Any, schema: str) -> list[dict[str, Any]]:
        rows = []
        for share in shares:
            self.done += share
            rows += [row for batch in work(share) for row in batch.to_pylist()]
        return rows


def rebuilt(store: Path, out: Path, split_bytes: int = SPLIT_BYTES, run: TaskRunner | None = None) -> Rebuilt:
    """Build queues and index of one store below ``out``, from splits of so many bytes."""
    places = find_stores(str(store))
    facts = list(facts_of(places, None, out))
    return rebuild(run or InProcessRunner(), facts, plan(places, split_bytes).splits, out)[0]


def dispatched(store: Path, out: Path) -> Dispatched:
    """Build the same by the engine's dispatch."""
    with open_store(str(store)) as source:
        return rebuild_beside(source, out, derived_config(source))


def figures(done: Rebuilt | Dispatched) -> tuple[object, ...]:
    """Return the figures that both report about their result."""
    return (
        done.units,
        done.queues,
        done.entries,
        done.index_files,
        done.index_entries,
        done.damaged,
        done.damaged_bytes,
        done.stale,
        done.deleted_topics,
    )


def tree(root: Path) -> list[str]:
    """Return folders and files, without index files."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.parent.name != "index")
