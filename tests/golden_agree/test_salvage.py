"""``salvage`` on the stores of real brokers: nothing on a sound one, every message of a damaged one from an image.

With ``STORESCOPE_GOLDEN=all`` all stores are tried, else a third of them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import golden_stores
import pytest
from salvage_rounds import salvage

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

DLEDGER = ["broker-dledger-5.5.1", "dledger-crash-5.5.1"]
PAGE = 4096


@pytest.mark.parametrize("name", [*golden_stores.third_of_names(2), *DLEDGER])
def test_a_sound_store_has_nothing_to_salvage_and_a_damaged_one_all_of_an_image(
    golden: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    """The image has the log's pages with other bytes between; live copies in it are left out."""
    rng = random.Random(name)
    with open_store(golden(name)) as store:
        units = {
            item.offset: store.log.read(item.offset, item.size)
            for item in store.units()
            if isinstance(item, Unit) and item.crc == "ok"
        }
        files = [(Path(file.path).relative_to(golden(name)), file.start_offset) for file in store.log.files]
    broken = [row for row in salvage(golden(name), []) if row.verdict not in ("damaged", "lost")]
    assert broken == []
    image, root = tmp_path / "image", tmp_path / "store"
    with image.open("wb") as target:
        for file, _ in files:
            data = (golden(name) / file).read_bytes()
            for position in range(0, len(data), 30 * PAGE):
                target.write(data[position : position + 30 * PAGE] + rng.randbytes(rng.randrange(3) * PAGE))
    shutil.copytree(golden(name), root, ignore=shutil.ignore_patterns("timerwheel", "timerlog", "index"))
    offsets = sorted(units)
    lost = offsets[len(offsets) // 3 : len(offsets) // 3 + 20]
    for offset in lost:
        file, start = max((pair for pair in files if pair[1] <= offset), key=lambda pair: pair[1])
        with (root / file).open("r+b") as log:
            log.seek(offset - start)
            log.write(bytes(len(units[offset])))
    rows = salvage(root, [image])
    assert [(row.verdict in ("whole", "reassembled"), row.physical_offset, row.data) for row in rows if row.data] == [
        (True, offset, units[offset]) for offset in lost
    ]
