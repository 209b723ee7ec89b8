"""A made time histogram: one bar a second for a minute, with a gap, two topics."""

from __future__ import annotations

from viewer.runtime.histogram_work import HistogramData

BEGIN = 1_700_000_000_000
GAP = range(20, 30)


def minute(**changes: object) -> HistogramData:
    """Return the bars of 60 seconds without those of the gap. Bar n has n + 1 messages of Orders and one of Audit."""
    seconds = [second for second in range(60) if second not in GAP]
    fields: dict[str, object] = {
        "width": 1000,
        "starts": [BEGIN + 1000 * second for second in seconds],
        "topics": ["Orders", "Audit"],
        "messages": [[second + 1 for second in seconds], [1 for _ in seconds]],
        "bytes": [[100 * (60 - second) for second in seconds], [50 for _ in seconds]],
        "first": [10_000 * second for second in seconds],
        "end": [10_000 * second + 9_000 for second in seconds],
        "p50": [2 for _ in seconds],
        "p99": [second * 10 + 2 for second in seconds],
        "units": sum(second + 2 for second in seconds),
    }
    return HistogramData(**{**fields, **changes})  # type: ignore[arg-type]
