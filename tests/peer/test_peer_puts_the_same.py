"""The real store and ours write the same bytes for the same plan; a copy into other file sizes equals the result of the
real store for the same messages.

``--peer-rounds N`` does so for N seeds and each release.
"""

import random

import pytest
from agree import records_of
from explicit_plans import account, explicit_plan, log_without_times, plan_of_units, write_conf, write_plan
from peer import RELEASES, Peer, plans

from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.peer


def pytest_generate_tests(metafunc):
    first_seed, rounds = metafunc.config.getoption("--peer-seed"), metafunc.config.getoption("--peer-rounds")
    metafunc.parametrize("seed", range(first_seed, first_seed + rounds))
    metafunc.parametrize("release", RELEASES)


def test_a_plan_gives_the_same_units_in_both(seed, release, tmp_path):
    plan = explicit_plan(seed, release)
    peer = Peer(release, tmp_path)
    peer.write(plan, tmp_path / "theirs")
    ours = tmp_path / "ours"
    put = records_of("put", ours, "--plan", write_plan(tmp_path / "plan.json", plan), "--release", release[:3])
    assert [row["type"] for row in put] == ["put"] * len(plan["messages"])
    assert {row["status"] for row in put} == {"PUT_OK"}
    assert log_without_times(ours) == log_without_times(tmp_path / "theirs")
    assert account(ours) == account(tmp_path / "theirs")
    reported = peer.dump(plan, ours)
    assert next(line for line in reported if line["t"] == "load")["ok"]
    assert sum(line["t"] == "msg" for line in reported) == len(plan["messages"])


def test_a_copy_into_other_sizes_is_what_the_real_store_makes_of_the_messages(seed, release, tmp_path):
    traffic = dict(plans(seed, release))["clean"] | {"pauseEvery": 0, "count": 500}
    if release == "4.9.8":
        traffic["delayEvery"] = 0  # its store would delay them once more
    peer = Peer(release, tmp_path)
    peer.write(traffic, tmp_path / "source")
    pick = random.Random(seed)
    sizes = {
        "mappedFileSizeCommitLog": pick.choice([40_960, 99_991]),
        "mappedFileSizeConsumeQueue": 20 * pick.choice([17, 50]),
        "maxHashSlotNum": 30,
        "maxIndexNum": pick.choice([77, 500]),
    }
    with open_store(tmp_path / "source") as source:
        repeated = plan_of_units(source, sizes, traffic["topics"])
    peer.write(repeated, tmp_path / "theirs")
    conf = write_conf(tmp_path / "sizes.conf", sizes)
    copied = records_of("copy", tmp_path / "source", tmp_path / "ours", "--config", conf)
    assert copied[-1]["units"] == len(repeated["messages"])
    ours, theirs = account(tmp_path / "ours", conf), account(tmp_path / "theirs", conf)
    for our in ours:
        assert ours[our] == theirs[our], our
