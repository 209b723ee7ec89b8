"""The time histogram of a log beside the walk alone: CPU seconds of the process, median of some turns.

    python tests/bench/bench_histogram.py [--folder DIR] [--bodies 200|1k] [--size BYTES] [--turns 7]

The log is that of ``storescope bench scan``, made if it is missing. ``walk`` reads blocks with their topics and tags,
as the histogram does; ``filtered`` is the histogram of one topic, ``cached`` the one from the side index (wall seconds
too). One JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench import data as bench_data
from engine.codec.topic_table import TopicTable
from engine.inspection.block_scan import scan_log
from engine.inspection.histogram.log_histogram import read_histogram
from engine.inspection.snapshot import open_store
from engine.query import parse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--bodies", choices=sorted(bench_data.BODY_BYTES), default="200")
    parser.add_argument("--size", type=int, default=bench_data.GIB)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    root = bench_data.log_store(args.folder, args.bodies, args.size)
    one_topic = parse('topic = "TopicBench3"')
    with open_store(root) as store, tempfile.TemporaryDirectory() as folder:
        log, cache = store.log, Path(folder)
        units = read_histogram(log, cache=cache).units  # code is loaded, the log is in the page cache
        work: dict[str, Callable[[], object]] = {
            "walk": lambda: sum(1 for _ in scan_log(log, crc=False, topics=TopicTable())),
            "histogram": lambda: read_histogram(log).bins.table(8),
            "filtered": lambda: read_histogram(log, one_topic).bins.table(8),
            "cached": lambda: read_histogram(log, cache=cache).bins.table(8),
        }
        spent: dict[str, list[float]] = {name: [] for name in work}
        waited: list[float] = []
        for _ in range(args.turns):
            for name, run in work.items():
                begun, started = time.process_time(), time.perf_counter()
                run()
                spent[name].append(time.process_time() - begun)
                if name == "cached":
                    waited.append(time.perf_counter() - started)
    cpu = {name: round(median(seconds), 4) for name, seconds in spent.items()}
    ratio = round(median(h / w for h, w in zip(spent["histogram"], spent["walk"], strict=True)), 2)
    print(json.dumps({"units": units, "cpu": cpu, "ratio": ratio, "cachedWall": round(median(waited), 4)}))


if __name__ == "__main__":
    main()
