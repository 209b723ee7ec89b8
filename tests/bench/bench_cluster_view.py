"""Time for which the Cluster view holds the loop: ``python tests/bench/bench_cluster_view.py [--topics 100] [--queues
16]``.

Offscreen, 1600 × 1000. One JSON line a step: milliseconds of processor time of the window's thread, median and longest
of ``--rounds``: a reading taken by the model, the frame after it, the same frame painted anew, a frame scrolled, and
unpacking a reading that came from the worker (in another thread).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("topics", 100), ("queues", 16), ("clients", 200), ("rounds", 30)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    args = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    measure(args.topics, args.queues, args.clients, args.rounds)


def measure(topics: int, queues: int, clients: int, rounds: int) -> None:
    import sample_clusters as made
    from PySide6.QtWidgets import QApplication

    from viewer.cluster.cluster_model import Reading, Selection
    from viewer.cluster.pane import ClusterPane
    from viewer.cluster.watch import ClusterWatch
    from viewer.look.theme import theme

    app = QApplication([])
    theme.apply(app)
    works = made.FakeReaderProcess()
    pane = ClusterPane()
    pane.set_watch(ClusterWatch(works, lambda work, done, _failed: done(work()), pane))
    pane.resize(1600, 1000)
    pane.show()
    assert pane.watch is not None
    pane.watch.begin(made.NAMES)
    states = [made.large(second, topics, queues, clients) for second in range(rounds + 1)]
    works.items(Reading(states[0]))
    pane.choose(Selection("topic", "Topic000"))
    app.processEvents()
    model, bar = pane.model, pane._cells_area.verticalScrollBar()
    packed = [pickle.dumps(Reading(state)) for state in states]

    def frame() -> None:
        pane._show()
        app.processEvents()

    def again() -> None:
        pane.update()
        pane.grab()

    def scroll(number: int) -> None:
        bar.setValue(number * 26)
        app.processEvents()

    output = {
        "unpack a reading": lambda number: pickle.loads(packed[number]),
        "take a reading": lambda number: model.take(Reading(states[number + 1])),
        "frame after a reading": lambda _number: frame(),
        "frame, scrolled": scroll,
        "the whole view painted": lambda _number: again(),
    }
    print(
        json.dumps({"queues": model.unfiltered.queues, "clients": model.unfiltered.clients, "load": os.getloadavg()[0]})
    )
    for step, work in output.items():
        print(json.dumps({"step": step, **timed(work, rounds)}), flush=True)


def timed(work: Callable[[int], object], rounds: int) -> dict[str, float]:
    """Return the milliseconds of processor time, without the collector's: the program collects when it is idle."""
    elapsed = []
    for number in range(rounds):
        gc.collect()
        gc.disable()
        begun = time.thread_time()
        work(number)
        elapsed.append((time.thread_time() - begun) * 1000)
        gc.enable()
    return {"median": round(statistics.median(elapsed), 2), "longest": round(max(elapsed), 2)}


if __name__ == "__main__":
    main()
