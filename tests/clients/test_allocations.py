"""The six allocation strategies beside those of RocketMQ's own client: 10,000 cases by chance."""

from __future__ import annotations

import subprocess

import allocation_cases
import pytest
import real_cluster

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
CASES = 10_000


@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_every_strategy_gives_what_java_gives(release: str) -> None:
    asked = list(allocation_cases.cases(7, CASES))
    done = subprocess.run(
        ["bash", str(real_cluster.JAVA / "allocations"), release],
        input="\n".join(asked) + "\n",
        text=True,
        capture_output=True,
        timeout=300,
        check=True,
        env=real_cluster.environment(),
    )
    told = done.stdout.split("\n")[:-1]
    assert len(told) == CASES
    assert [one for one in zip(asked, map(allocation_cases.said, asked), told, strict=True) if one[1] != one[2]] == []
