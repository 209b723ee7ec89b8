"""The real store writes, our engine reads: fresh plans from a seed, closed cleanly or halted, for both releases.

``--peer-rounds N`` runs N seeds (two plans each, for each release), one by default; ``--peer-seed`` sets the first.
"""

from __future__ import annotations

import shutil

import agree
import peer
import pytest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]


def pytest_generate_tests(metafunc):
    """Make one test for each seed and release."""
    if "seed" in metafunc.fixturenames:
        first_seed = metafunc.config.getoption("--peer-seed")
        seeds = range(first_seed, first_seed + metafunc.config.getoption("--peer-rounds"))
        metafunc.parametrize("seed", seeds)


def planned_release(release: str) -> str:
    """Return the value of ``--like`` for a release."""
    return release[:3]


def assert_aspects_agree(store, account):
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(store, account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(store, account).compared > 100


@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_closed_store_reads_as_java_reads_it(tmp_path, unchanged, release, seed):
    java = peer.Peer(release, tmp_path)
    plan = dict(peer.plans(seed, release))["clean"]
    store = tmp_path / "store"
    java.write(plan, store)
    # 4.9 puts a prepared unit at the log's end into the index again at each start: what it tells is what it leaves.
    opened = tmp_path / "opened"
    shutil.copytree(store, opened)
    account = java.dump(plan, opened, in_place=release == "4.9.8")
    assert_aspects_agree(unchanged(opened), account)
    tally = agree.recover(store, account, planned_release(release))
    assert not tally.differences, f"recover: {tally}"


@pytest.mark.crash
@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_halted_store_is_planned_as_java_recovers_it(tmp_path, unchanged, release, seed):
    java = peer.Peer(release, tmp_path)
    plan = dict(peer.plans(seed, release))["halted"]
    store, recovered = tmp_path / "store", tmp_path / "recovered"
    java.write(plan, store)
    shutil.copytree(store, recovered)
    account = java.dump(plan, recovered, in_place=True)

    for aspect, compare in (("recover", agree.recover), ("units", agree.units)):
        releases = (planned_release(release),) if aspect == "recover" else ()
        tally = compare(unchanged(store), account, *releases)
        assert not tally.differences, f"{aspect}: {tally}"
    # 4.9 puts a prepared unit at the log's end into the index again at each start: what it tells is what it leaves.
    account = java.dump(plan, recovered, in_place=release == "4.9.8")
    assert_aspects_agree(unchanged(recovered), account)
