"""Our broker answers partly wrong requests of every kind like RocketMQ's: code, remark and names of fields.

``known_differences.json`` lists the known differences by release, with reasons and requests. The list only shrinks: an
entry without a difference fails, too. All in full form.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import malformed_requests
import pytest
from other_clients import ServerPair

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(900)]
KNOWN = Path(__file__).with_name("known_differences.json")
RELEASES = {"5.3": "5.3.3", "4.9": "4.9.7"}
CONFIG = {"brokerClusterName": "PeerCluster", "longPollingEnable": "false"}


def broker_answers(kind: str, release: str, folder: Path) -> dict[str, malformed_requests.Answered]:
    with ServerPair(kind, kind, folder, CONFIG, RELEASES[release]) as setting:
        return asyncio.run(malformed_requests.answers(setting.address, release))


@pytest.mark.parametrize("release", RELEASES)
def test_each_request_is_answered_as_by_rocketmq(release: str, tmp_path: Path) -> None:
    theirs, ours = (broker_answers(kind, release, tmp_path / kind) for kind in ("real", "ours"))
    assert theirs.keys() == ours.keys()
    assert len(theirs) > 1000
    different = {name for name, real in theirs.items() if not malformed_requests.is_same(real, ours[name])}
    known_names = {name for names in json.loads(KNOWN.read_text("utf-8"))[release].values() for name in names}
    lines = [
        f"{name}:\n  real {theirs[name]}\n  ours {ours[name]}" for name in theirs if name in different - known_names
    ]
    (tmp_path / "different.txt").write_text("\n".join(lines), "utf-8")
    assert not lines, f"{len(lines)} of {len(theirs)} differ:\n" + "\n".join(lines[:40])
    assert not known_names - different, f"answered as by RocketMQ now: {sorted(known_names - different)}"
