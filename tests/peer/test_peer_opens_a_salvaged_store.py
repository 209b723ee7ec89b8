"""The real RocketMQ opens the store that ``salvage --to`` wrote of an image: it starts, and answers like our engine."""

from __future__ import annotations

import json
import random
from pathlib import Path

import agree
import peer
import pytest

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
PAGE = 4096


def image_of(store: Path, image: Path) -> None:
    """Write the pages of the log's files in order, with pages of other bytes between some of them."""
    rng = random.Random(4)
    with image.open("wb") as target:
        for file in sorted((store / "commitlog").iterdir()):
            data = file.read_bytes()
            for position in range(0, len(data), 16 * PAGE):
                target.write(data[position : position + 16 * PAGE] + rng.randbytes(rng.randrange(3) * PAGE))


@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_reads_and_queries_what_was_salvaged(
    tmp_path: Path, release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dict(peer.plans(6, release))["clean"]
    java, source, new = peer.Peer(release, tmp_path), tmp_path / "store", tmp_path / "new"
    java.write(plan, source)
    image_of(source, tmp_path / "image")
    files = sorted((source / "commitlog").iterdir())
    for file in files[1:]:
        file.unlink()
    files[0].write_bytes(bytes(files[0].stat().st_size))
    assert main(["salvage", str(source), "--image", str(tmp_path / "image"), "--to", str(new), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["check", str(new), "--fail-on", "warn", "--json"]) == 0, capsys.readouterr().out
    account = java.dump(plan, new)
    assert next(row for row in account if row["t"] == "load")["ok"]
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(new, account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(new, account).compared == summary["written"] > 100
    assert [row for row in account if row["t"] == "query"]
