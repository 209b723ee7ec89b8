"""Stores made again from rows of their export, in this process, without Spark's transport and sorting."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from engine.cli.copying import target_config
from engine.cli.pipeline_export import _store_facts
from engine.cli.pipeline_import import ImportPlan, _Writer
from engine.cli.writing import quiet
from engine.config import from_mapping
from engine.pipeline import imports
from engine.pipeline.export import ExportOptions, arrow_schema, rows_of
from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan
from engine.releases import NEWEST, Release


def imported(store: Path, fresh: Path, split_bytes: int) -> Any:
    """Export ``store`` by splits of so many bytes, import the rows in any order into ``fresh``, and return the
    writer.
    """
    import pyarrow as pa

    splits = list(plan(find_stores(str(store)), split_bytes).splits)
    random.Random(split_bytes).shuffle(splits)
    rows = pa.Table.from_batches(rows_of(splits, ExportOptions()), arrow_schema()).sort_by("physicalOffset")
    batches = rows.select(list(imports.NEEDED)).to_batches(max_chunksize=997)
    units = [tuple(row.values()) for batch in imports._encode(batches) for row in batch.to_pylist()]
    facts = _store_facts(str(store))
    return written(fresh, facts["config"], units, facts.get("batchTopics"), facts["release"])


def written(
    fresh: Path,
    settings: dict[str, Any],
    units: list[tuple[int, str, bytes]],
    batches: dict[str, int] | None = None,
    release: Release = NEWEST,
) -> Any:
    """Append (offset, crc, unit) to the new store ``fresh``, like an import, and return the writer."""
    config, _ = from_mapping(settings)
    fresh.mkdir()
    job = SimpleNamespace(watch=SimpleNamespace(check=lambda: None))
    plan = ImportPlan(quiet(target_config(config, None)), batches or {}, release, None)
    return _Writer(fresh, plan).run(units, job)  # type: ignore[arg-type]
