"""Entries of a queue with ext files get back the addresses of their ext units."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from engine.cli.main import main

pytestmark = pytest.mark.golden
QUEUE = "consumequeue/wide/0"


def spoil(root: Path, kind: str) -> None:
    folder = root / QUEUE
    (file,) = folder.iterdir()
    data = bytearray(file.read_bytes())
    match kind:
        case "zeros":
            data[100:300] = bytes(200)
        case "random bytes":
            data[100:160] = random.Random(1).randbytes(60)
        case "a file":
            file.unlink()
            return
        case "the folder":
            shutil.rmtree(folder)
            return
    file.write_bytes(data)


@pytest.mark.parametrize("kind", ["zeros", "random bytes", "a file", "the folder"])
def test_the_entries_become_what_they_were(golden, tmp_path, kind):
    before = {path.name: path.read_bytes() for path in (golden("multi-queue-ext-5.3.3") / QUEUE).iterdir()}
    root = Path(shutil.copytree(golden("multi-queue-ext-5.3.3"), tmp_path / "store"))
    spoil(root, kind)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert {path.name: path.read_bytes() for path in (root / QUEUE).iterdir()} == before


def test_an_entry_whose_ext_unit_is_lost_gets_its_tag_code(golden, tmp_path):
    """A broker writes the code itself where it cannot store an ext unit: consumers with tags get the message."""
    root = Path(shutil.copytree(golden("multi-queue-ext-5.3.3"), tmp_path / "store"))
    spoil(root, "the folder")
    shutil.rmtree(root / "consumequeue_ext" / "wide" / "0")
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    (file,) = (root / QUEUE).iterdir()
    codes = {
        int.from_bytes(file.read_bytes()[place + 12 : place + 20], "big", signed=True) for place in range(0, 400, 20)
    }
    assert all(-(1 << 31) <= code < 1 << 31 for code in codes)
