"""The real RocketMQ opens a store that was exported and imported again: it starts, and answers like our engine."""

from __future__ import annotations

from pathlib import Path

import agree
import peer
import pytest
from imported_stores import imported

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_reads_and_queries_an_imported_store(tmp_path: Path, release: str) -> None:
    plan = dict(peer.plans(6, release))["clean"]
    java, source, fresh = peer.Peer(release, tmp_path), tmp_path / "store", tmp_path / "fresh"
    java.write(plan, source)
    done = imported(source, fresh, 60_000)
    account = java.dump(plan, fresh)
    assert next(row for row in account if row["t"] == "load")["ok"]
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(fresh, account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(fresh, account).compared == done.units > 100
    assert [row for row in account if row["t"] == "query"]
