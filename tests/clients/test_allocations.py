"""The six allocation strategies give the results of RocketMQ's own client: 10,000 random cases."""

from __future__ import annotations

import subprocess

import allocation_cases
import pytest
import real_cluster

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
CASES = 10_000


@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_every_strategy_gives_what_java_gives(release: str) -> None:
    cases = list(allocation_cases.cases(7, CASES))
    done = subprocess.run(
        ["bash", str(real_cluster.JAVA / "allocations"), release],
        input="\n".join(cases) + "\n",
        text=True,
        capture_output=True,
        timeout=300,
        check=True,
        env=real_cluster.environment(),
    )
    words = done.stdout.split("\n")[:-1]
    assert len(words) == CASES
    assert [
        item
        for item in zip(cases, map(allocation_cases.allocation_line, cases), words, strict=True)
        if item[1] != item[2]
    ] == []
