"""What ``salvage`` costs beside the walk of as many bytes of log with its CRCs.

    python tests/bench/bench_salvage.py [--mib 256] [--turns 5] [--kinds live+fragmented] [--bodies 1024] [--folder DIR]

One JSON line a kind of image: ``speed`` is the processor time of the walk (user and system of this process) divided by
that of the search, for the image alone, in turns; the median and least of all turns. Start-up is left out: both sides
run once before. The rows, which are made when they are printed, are not in it. Must be reached: 0.9.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench import data as bench_data
from engine.codec.message import MAGIC_BLANK
from engine.inspection.block_scan import scan_log
from engine.inspection.salvage.salvage_search import SalvageSearch
from engine.inspection.salvage.searched_files import open_images
from engine.inspection.snapshot import open_store

PIECE_BYTES, FOREIGN_BYTES = 1 << 16, 4096
_WORDS = b"tea coffee order paid 4711 shipped customer O-1042 warehouse \n".split(b" ")


def log_bytes(size: int, bodies: int, base: int, seed: int) -> bytes:
    """Return a full log file of ``size`` bytes from offset ``base`` on."""
    log = bytearray()
    for unit in bench_data.units(bodies, bodies, base, seed=seed):
        if len(log) + len(unit) + 8 > size:
            break
        log += unit
    return bytes(log + (size - len(log)).to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")).ljust(size, b"\0")


def write_store(root: Path, contents: list[bytes]) -> None:
    """Write a store with these log files, one behind the other."""
    (root / "commitlog").mkdir(parents=True)
    base = 0
    for content in contents:
        (root / "commitlog" / f"{base:020d}").write_bytes(content)
        base += len(content)


def fragments(log: bytes, foreign: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield ``log`` with a foreign block between every 64 KiB."""
    for start in range(0, len(log), PIECE_BYTES):
        yield log[start : start + PIECE_BYTES]
        yield foreign(FOREIGN_BYTES)


def image_parts(kind: str, store_log: bytes, next_log: bytes, other_log: bytes) -> Iterator[bytes]:
    """Yield the bytes of an image."""
    rng = random.Random(1)
    numbers = count()
    match kind:
        case "random":
            for start in range(0, len(store_log), PIECE_BYTES):
                yield rng.randbytes(min(PIECE_BYTES, len(store_log) - start))
        case "text":
            text = b" ".join(rng.choices(_WORDS, k=1 << 20))
            for _ in range(0, len(store_log), len(text)):
                yield text
        case "other log":
            yield other_log
        case "live":
            yield store_log
        case "fragmented":
            yield from fragments(next_log, rng.randbytes)
        case "fragmented, zeros between":
            yield from fragments(next_log, bytes)
        case "fragmented, another log between":
            yield from fragments(next_log, lambda size: other_log[(start := size * next(numbers)) : start + size])
        case "fragmented live":
            yield from fragments(store_log, rng.randbytes)


KINDS = (
    "random",
    "text",
    "other log",
    "live",
    "fragmented",
    "fragmented, zeros between",
    "fragmented, another log between",
    "fragmented live",
)


def walk_seconds(root: Path) -> float:
    """Return the processor time of the walk of the store's log."""
    with open_store(root) as store:
        end = store.log.max_offset
        start = time.process_time()
        for _ in scan_log(store.log, stop=end, with_tags=False):
            pass
        return time.process_time() - start


def search_seconds(root: Path, image: Path) -> tuple[float, SalvageSearch]:
    """Return the processor time of the search of the image, with the walk of the store, and the search."""
    with open_store(root) as store, open_images([image]) as images:
        assert store.log.max_offset
        search = SalvageSearch(store, images)
        start = time.process_time()
        search.run(lambda _: None)
        return time.process_time() - start, search


def measure(kind: str, bodies: int, size: int, turns: int, folder: Path) -> dict[str, object]:
    """Return the figures of one kind of image."""
    is_live = "live" in kind
    store_log = log_bytes(size, bodies, 0, 1)
    store_file = store_log if is_live else log_bytes(1 << 20, bodies, 0, 1)
    next_log = b"" if is_live else log_bytes(size, bodies, len(store_file), 3)
    other_log = b"" if is_live else log_bytes(size, bodies, 1 << 40, 4)
    write_store(folder / "walked", [store_log])
    write_store(folder / "store", [store_file])
    image = folder / "image"
    with image.open("wb") as target:
        for part in image_parts(kind, store_log, next_log, other_log):
            target.write(part)
    speeds, whole_speeds = [], []
    for turn in range(turns + 1):
        walked, own = walk_seconds(folder / "walked"), walk_seconds(folder / "store")
        searched, search = search_seconds(folder / "store", image)
        if turn:  # the first one loads code
            scale = image.stat().st_size / size
            speeds.append(walked * scale / max(searched - own, 1e-9))
            whole_speeds.append((walked * scale + own) / searched)
    return {
        "kind": kind,
        "bodies": bodies,
        "imageMiB": image.stat().st_size >> 20,
        "speed": round(statistics.median(speeds), 3),
        "least": round(min(speeds), 3),
        "withStore": round(statistics.median(whole_speeds), 3),
        "walkGBs": round(size / walked / 1e9, 2),
        "runs": len(search._result.runs),
        "joined": search._reassembly.unit_count if search._reassembly else 0,
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--bodies", default="1024,200")
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args()
    kinds = [kind for kind in KINDS if not args.kinds or kind in args.kinds.split("+")]
    for bodies in map(int, args.bodies.split(",")):
        for kind in kinds:
            folder = Path(tempfile.mkdtemp(prefix="salvage-", dir=args.folder))
            try:
                print(json.dumps(measure(kind, bodies, args.mib << 20, args.turns, folder)), flush=True)
            finally:
                shutil.rmtree(folder)
    print(json.dumps({"load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
