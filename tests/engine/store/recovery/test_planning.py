"""What lies behind an end of the log, counted against stores of which every unit is known."""

from __future__ import annotations

import pytest
from made_stores import LOG_SIZE, healthy

from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery import planning as recovery_dropped
from engine.store.recovery.planning import Dropped


@pytest.fixture
def made():
    return healthy(80)


@pytest.fixture
def files(made, tmp_path):
    cache = DescriptorCache()
    made.write(tmp_path)
    yield FileSequence((tmp_path / "commitlog",), cache).files
    cache.close()


@pytest.mark.parametrize("kept", [0, 1, 17, 40, 79, 80])
@pytest.mark.parametrize("chunk", [256, 1000, 8 << 20])
def test_every_unit_behind_the_end_counts(kept, chunk, made, files, monkeypatch):
    monkeypatch.setattr(recovery_dropped, "CHUNK", chunk)
    end = made.units[kept].offset if kept < 80 else made.end
    dropped = Dropped(files, end)
    assert dropped.units == 80 - kept
    assert dropped.data_end == made.end
    assert (dropped.bytes > 0) == (kept < 80)


def test_damage_in_between_is_stepped_over(made, files, tmp_path):
    unit = made.units[30]
    path = tmp_path / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}"
    with path.open("r+b") as file:
        file.seek(unit.offset % LOG_SIZE + 4)
        file.write(b"xxxx")
    assert Dropped(files, made.units[20].offset).units == 59
