"""How far a streaming query is behind the logs that it follows, out of what Spark says of its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def lag(progress: Any) -> dict[str, int]:
    """Bytes of each log, by the path of its store, that were there and not delivered when ``progress`` was told.

    ``progress`` is a query's ``lastProgress``, its ``json``, or what a listener gets. {} where it names no offsets:
    Spark 4.2 and later ask a source how far it could be read.
    """
    if not isinstance(progress, Mapping):
        progress = json.loads(progress if isinstance(progress, str) else progress.json)
    behind: dict[str, int] = {}
    for source in progress.get("sources", ()):
        done, there = _read(source.get("endOffset")), _read(source.get("latestOffset"))
        for path, log in there.items():
            if isinstance(log, Mapping) and "first" in log:
                kept = done.get(path, {"offset": log["first"]})
                offset = kept if isinstance(kept, int) else kept["offset"]
                behind[path] = behind.get(path, 0) + max(log["offset"] - offset, 0)
    return behind


def _read(offset: Any) -> dict[str, Any]:
    found = json.loads(offset) if isinstance(offset, str) else offset
    return dict(found) if isinstance(found, Mapping) else {}
