"""The relation ``units`` with decoded bodies: as JSON text, for DuckDB's functions on JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.decoding.bodies import BodyDecoders
from engine.decoding.values import json_text
from engine.pipeline import schema
from engine.sql.unit_relations import UNITS_WITH_BODIES, Progress, unit_batches

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.decoding.rules import DecodingRule
    from engine.inspection.snapshot import StoreSnapshot

_DECODED: schema.Columns = {"decoded": "string", "decodeError": "string"}
DECODED_UNITS: schema.Columns = UNITS_WITH_BODIES | _DECODED
"""Columns with the body as JSON, null where no rule is for it or it cannot be decoded, and why it cannot."""
_NEEDED = ("topic", "sysFlag", "body")
_NEEDED_BY_CONDITIONS = ("tags", "properties")


def decoded_unit_batches(
    rules: Sequence[DecodingRule],
) -> Callable[[StoreSnapshot, schema.Columns, Progress], Iterator[pa.RecordBatch]]:
    """Return what reads the relation, with bodies decoded by ``rules``. Raises as :meth:`BodyDecoders.prepare`."""
    BodyDecoders(rules).prepare()

    def batches(store: StoreSnapshot, columns: schema.Columns, on_progress: Progress) -> Iterator[pa.RecordBatch]:
        if not _DECODED.keys() & columns.keys():
            yield from unit_batches(store, columns, on_progress)
            return
        decoders = BodyDecoders(rules)
        needed = _NEEDED + (_NEEDED_BY_CONDITIONS if decoders.needs_properties else ())
        stored = {name: kind for name, kind in UNITS_WITH_BODIES.items() if name in needed or (name in columns)}
        for batch in unit_batches(store, stored, on_progress):
            yield _with_decoded(batch, decoders)

    return batches


def _with_decoded(batch: pa.RecordBatch, decoders: BodyDecoders) -> pa.RecordBatch:
    import pyarrow as pa

    topics, flags, bodies = (batch.column(name).to_pylist() for name in _NEEDED)
    if decoders.needs_properties:
        tags = batch.column("tags").to_pylist()
        properties = [dict(pairs) for pairs in batch.column("properties").to_pylist()]
    else:
        tags, properties = [None] * len(topics), [{}] * len(topics)
    values: list[str | None] = []
    errors: list[str | None] = []
    for topic, tag, message_properties, body, flag in zip(topics, tags, properties, bodies, flags, strict=True):
        decoded = decoders.decode_message(topic, tag, message_properties, body, flag)
        values.append(json_text(decoded.value) if decoded.is_decoded else None)
        errors.append(str(decoded.error) if decoded.error else None)
    return pa.RecordBatch.from_arrays(
        [*batch.columns, pa.array(values, pa.string()), pa.array(errors, pa.string())],
        names=[*batch.schema.names, *_DECODED],
    )
