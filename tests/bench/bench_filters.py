"""Filters over a whole log, and its units as lines of JSON: CPU seconds of the process, median of some turns.

    python tests/bench/bench_filters.py [--folder DIR] [--bodies 200|1k] [--size BYTES] [--turns 5] [--where FILTER ...]

The log is that of ``storescope bench scan``, made if it is missing. Every turn walks it once for each filter, in the
worker's way: blocks with their topics and tags, then the rows of the filter. ``true`` is the walk alone. One JSON line
a
filter, and one for the lines of ``units --json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench import data as bench_data
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.inspection.matching import listed
from engine.inspection.records import Lines
from engine.inspection.snapshot import open_store
from engine.query import parse

FILTERS = (
    "true",
    'topic = "TopicBench3"',
    "queueId = 2 and storeTimestamp > 1700000200000",
    'tags = "TagB"',
    'keys = "order-00012345"',
    'keys contains "2345" and not tags = "TagA"',
    'properties.WAIT = "true"',
    'uniqueKey endswith "00FF"',
    'bornHost startswith "127."',
    'body contains "needle"',
    'body startswith "ab" or keys = "order-00012345"',
    "keys matches /9{4}/",
)


def rows_of(log: LogReader, text: str) -> int:
    """Return the number of units that ``text`` takes."""
    topics, expected = TopicTable(), parse(text)
    received = expected.on_blocks(topics, log.file_name, crc=False)
    blocks = scan_log(log, crc=False, topics=topics)
    return sum(len(received.rows(block)) for block in blocks if isinstance(block, UnitColumns))


def lines_of(log: LogReader) -> int:
    """Return the number of lines that ``units --json`` writes, and encode them as UTF-8."""
    results = 0
    for item in listed(log, None, near=0):
        if isinstance(item, Lines):
            results += item.units
            item.text.encode()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--bodies", choices=sorted(bench_data.BODY_BYTES), default="200")
    parser.add_argument("--size", type=int, default=bench_data.GIB)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--where", nargs="*", default=FILTERS)
    args = parser.parse_args()
    root = bench_data.log_store(args.folder, args.bodies, args.size)
    with open_store(root) as store:
        rows_of(store.log, 'keys = "x"')  # code is loaded, the log is in the page cache
        spent: dict[str, list[float]] = {text: [] for text in args.where}
        results: dict[str, int] = {}
        for _ in range(args.turns):
            for text in args.where:
                began = time.process_time()
                results[text] = rows_of(store.log, text)
                spent[text].append(time.process_time() - began)
        for text in args.where:
            print(json.dumps({"where": text, "rows": results[text], "cpuSeconds": round(median(spent[text]), 3)}))
        began = time.process_time()
        rows = lines_of(store.log)
        print(json.dumps({"lines": rows, "perCpuSecond": round(rows / (time.process_time() - began))}))


if __name__ == "__main__":
    main()
