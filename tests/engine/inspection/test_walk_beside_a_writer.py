"""A walk beside another process that writes units in pieces: what is not complete yet is no damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from engine.codec.unit_scan import Damage, Stop
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence

SUPPORT = Path(__file__).parents[2] / "support"
FILE_SIZE = 4096
LEAST_FILES = 300
"""Files that the writer begins while the walks are counted: each one is a chance to meet it."""
RETAINED_FILES = 100
"""A folder of so few files is listed by one call of the system, so the list has no gap."""
WRITER = f"""
import mmap, random, sys, time
from itertools import count
from pathlib import Path
sys.path.insert(0, {str(SUPPORT)!r})
from raw_units import raw_blank, raw_unit

folder, rng, offset = Path(sys.argv[1]), random.Random(1), 0

def put(data):
    global position
    cuts = sorted(rng.sample(range(1, len(data)), 2))
    for start, stop in zip([0, *cuts], [*cuts, len(data)]):
        memory[position + start : position + stop] = data[start:stop]
        if rng.random() < 0.3:
            time.sleep(rng.choice((0, 0.0002)))
    position += len(data)

for number in count():
    with open(folder / f"{{number * {FILE_SIZE}:020d}}", "w+b") as file:
        file.truncate({FILE_SIZE})
        memory = mmap.mmap(file.fileno(), {FILE_SIZE})
    position = 0
    while True:
        unit = raw_unit(number * {FILE_SIZE} + position, body=rng.randbytes(rng.randrange(900)))
        if position + len(unit) + 8 > {FILE_SIZE}:
            break
        put(unit)
    put(raw_blank({FILE_SIZE} - position))
    (folder / f"{{(number - {RETAINED_FILES}) * {FILE_SIZE}:020d}}").unlink(missing_ok=True)
    if number == 3:
        print("writing", flush=True)
"""


def opened(folder: Path) -> LogReader:
    """Open the log of the files that are there now."""
    return LogReader(FileSequence([folder], DescriptorCache()))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_unit_that_is_completed_during_a_walk_is_no_damage(tmp_path: Path, end: signal.Signals) -> None:
    """The writer completed a unit and began the next file while a walk decided about the unit's first bytes. The walk
    called them damage, because the next file held data by then.
    """
    inside = []
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            log = opened(tmp_path)
            end_offset = log.end_offset + LEAST_FILES * FILE_SIZE
            while log.end_offset < end_offset:
                items = list(log.walk(log.files[-3].start_offset))
                inside += [
                    item
                    for item, next_item in pairwise(items)
                    if isinstance(item, Damage) and not isinstance(next_item, Stop)
                ]
                log.refresh()
            writer.send_signal(end)
            if end == signal.SIGSTOP:
                os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
            else:
                writer.wait()
            *items, stop = opened(tmp_path).walk()
        finally:
            writer.kill()
    assert not inside
    assert isinstance(stop, Stop)
    assert [item.offset for item in items if isinstance(item, Damage)] == [stop.offset] * (
        stop.kind in ("cut", "damage")
    )
