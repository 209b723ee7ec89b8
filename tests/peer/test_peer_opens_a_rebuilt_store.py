"""The real RocketMQ opens a store whose queues and index the pipeline built from its log: it starts, and answers from
every queue and for every key like from its own.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import agree
import peer
import pytest
from rebuilt_stores import rebuilt

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_reads_and_queries_what_was_rebuilt_as_its_own(tmp_path: Path, release: str) -> None:
    plan = dict(peer.plans(6, release))["clean"]
    java, store = peer.Peer(release, tmp_path), tmp_path / "store"
    java.write(plan, store)
    rebuilt(store, tmp_path / "new", 60_000)
    for name in ("consumequeue", "index"):
        shutil.rmtree(store / name)
        (tmp_path / "new" / name).rename(store / name)
    account = java.dump(plan, store)
    assert next(row for row in account if row["t"] == "load")["ok"]
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(store, account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(store, account).compared > 100
    answers = [row for row in account if row["t"] == "query"]
    assert answers
