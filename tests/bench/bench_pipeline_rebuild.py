"""Rebuilding queues and index, and verifying, on Spark beside the engine's own process, over the same hot log.

    python tests/bench/bench_pipeline_rebuild.py [--repeats 5] [--master local[2]] [--only rebuild|verify] [--files 4]

The log is of ``--files`` files of ``--mib``. Both write real files and bring them to the disk. The session is started
and warm; its start is told apart. Turns alternate, the order of each pair too; what is told is the median and the ratio
of medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))
os.environ["PYTHONPATH"] = str(ROOT)

from bench_pipeline import several_files  # noqa: E402

from engine.bench import data as bench_data  # noqa: E402
from engine.bench.reads import conditions  # noqa: E402
from engine.cli.pipeline_rebuild import facts_of  # noqa: E402
from engine.cli.pipeline_verify import verify  # noqa: E402
from engine.files.layout import StorePaths, queue_file_name  # noqa: E402
from engine.inspection.derived_config import derived_config  # noqa: E402
from engine.inspection.findings import check  # noqa: E402
from engine.inspection.snapshot import open_store  # noqa: E402
from engine.pipeline import session  # noqa: E402
from engine.pipeline.files import find_stores  # noqa: E402
from engine.pipeline.rebuild import SparkTasks, rebuild  # noqa: E402
from engine.pipeline.splits import plan  # noqa: E402
from engine.rebuilding import rebuild_beside  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--bodies", nargs="*", default=list(bench_data.BODY_BYTES))
    parser.add_argument("--only", choices=("rebuild", "verify"))
    parser.add_argument("--mib", type=int, default=1024, help="the size of a file of the log")
    parser.add_argument("--files", type=int, default=4)
    args = parser.parse_args()
    size = args.mib << 20
    text = f"{args.files} x {args.mib:,} MiB"
    began = time.perf_counter()
    spark = session.start(args.master, tempfile.mktemp(suffix=".log"))
    on = SparkTasks(spark)
    print(f"session {args.master}: {time.perf_counter() - began:.1f} s")
    folder = bench_data.default_folder()
    for bodies in args.bodies:
        root = several_files(folder, bodies, size, args.files)
        if args.only != "verify":
            place = Path(tempfile.mkdtemp(prefix="rebuild-", dir=root.parent))
            try:
                _measure(f"rebuild, {bodies}-byte bodies, {text}", _rebuild_turns(on, root, place), args.repeats)
            finally:
                shutil.rmtree(place)
        if args.only != "rebuild":
            _measure(f"verify, {bodies}-byte bodies, {text}", _verify_turns(on, _healthy(root)), args.repeats)
    print(conditions())


def _healthy(root: Path) -> Path:
    """Make a store with the log of ``root``, its queues and index, and the next file of the log, which is empty."""
    complete = root.with_name(f"{root.name}-healthy")
    if not complete.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{complete.name}-", dir=complete.parent))
        with open_store(str(root)) as store:
            rebuild_beside(store, draft / "built", derived_config(store))
        (draft / "built" / "commitlog").mkdir()
        files = sorted(StorePaths(root).commitlog.iterdir())
        for path in files:
            (draft / "built" / "commitlog" / path.name).hardlink_to(path)
        size = files[0].stat().st_size
        with (draft / "built" / "commitlog" / queue_file_name(len(files) * size)).open("wb") as following:
            following.truncate(size)
        (draft / "built").rename(complete)
        draft.rmdir()
    return complete


def _verify_turns(on: SparkTasks, root: Path) -> dict[str, Callable[[], object]]:
    def engine() -> object:
        with open_store(str(root)) as store:
            return list(check(store))

    def pipeline() -> object:
        places = find_stores(str(root))
        return verify(on, places, plan(places).splits)

    return {"engine": lambda: engine, "pipeline": lambda: pipeline}


def _rebuild_turns(on: SparkTasks, root: Path, place: Path) -> dict[str, Callable[[], object]]:
    def engine() -> object:
        with open_store(str(root)) as store:
            return rebuild_beside(store, place / "engine", derived_config(store))

    def pipeline() -> object:
        places = find_stores(str(root))
        return rebuild(on, list(facts_of(places, None, place / "pipeline")), plan(places).splits, place / "pipeline")

    def cleaned(work: Callable[[], object]) -> Callable[[], object]:
        def turn() -> object:
            for name in ("engine", "pipeline"):
                shutil.rmtree(place / name, ignore_errors=True)
            return work

        return turn

    return {"engine": cleaned(engine), "pipeline": cleaned(pipeline)}


def _measure(label: str, turns: dict[str, Callable[[], object]], repeats: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(repeats + 1):
        for name in list(turns) if number % 2 else list(turns)[::-1]:
            work = turns[name]()
            assert callable(work)
            began = time.perf_counter()
            work()
            if number:
                seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(second) for name, second in seconds.items()}
    engine, pipeline = medians.values()
    text = "; ".join(f"{name} {statistics.median(s):.2f} s ({min(s):.2f}–{max(s):.2f})" for name, s in seconds.items())
    print(f"{label}: {text}; ratio {pipeline / engine:.2f}")


if __name__ == "__main__":
    main()
