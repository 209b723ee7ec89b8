"""Questions in SQL over a store of 1 GiB with messages of 200 B.

    python tests/bench/bench_sql.py [--folder FOLDER] [--size 1073741824] [--rounds 3]

What must be reached: messages by topic in 1 s, a join with the queue entries in 3 s. One JSON line: for each question
the median of the wall clock and of the processor, in seconds, the connection included.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench import data as bench_data
from engine.inspection import open_store
from engine.sql.store_queries import StoreQueries

QUESTIONS = {
    "byTopic": "SELECT topic, count(*) FROM units GROUP BY 1",
    "joinWithEntries": "SELECT count(*) FROM units u JOIN queue_entries e USING (physicalOffset)",
    "joinByPlace": "SELECT count(*) FROM units u JOIN queue_entries e USING (topic, queueId, queueOffset)",
    "oneTopic": "SELECT count(*), sum(size) FROM units WHERE topic = 'TopicBench1'",
    "byMinute": "SELECT date_trunc('minute', storeTime), count(*) FROM units GROUP BY 1",
    "byTag": "SELECT tags, count(*) FROM units GROUP BY 1",
}


def measure(store_path: Path, question: str) -> tuple[float, float, int]:
    """Ask once; return seconds of the wall clock and of the processor, and the rows."""
    begun, cpu_begun = time.perf_counter(), time.process_time()
    with open_store(store_path) as store, StoreQueries(store) as queries:
        rows = sum(batch.num_rows for batch in queries.ask(question))
    return time.perf_counter() - begun, time.process_time() - cpu_begun, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--size", type=int, default=bench_data.GIB)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    store = bench_data.whole_store(args.folder, args.size)
    figures = {}
    measure(store, "SELECT 1")  # imports
    for name, question in QUESTIONS.items():
        rounds = [measure(store, question) for _ in range(args.rounds)]
        seconds, cpu_seconds, rows = zip(*rounds, strict=True)
        figures[name] = {"seconds": round(median(seconds), 3), "cpu": round(median(cpu_seconds), 3), "rows": rows[0]}
    print(json.dumps({"load": os.getloadavg()[0], "bytes": args.size, **figures}))


if __name__ == "__main__":
    main()
