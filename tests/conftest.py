"""Fixtures that every suite shares: golden stores, and the promise that reading leaves them as they are."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import golden_stores
import hypothesis
import pytest
from garbage_on_main_thread import pytest_collection_finish, pytest_runtest_teardown
from partners import pytest_report_collectionfinish, pytest_runtest_setup
from suite_minutes import pytest_configure, pytest_terminal_summary
from suite_order import pytest_collection_modifyitems, pytest_xdist_make_scheduler

from engine.codec import compiled_cache

__all__ = [
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_collectionfinish",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
]

# The window is drawn without a display unless the caller asks for one.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# Java, here and in programs that tests start: nothing runs long enough for a compiler that takes its time.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK)
os.environ.setdefault("SPEED_JVM", f"-Xms512m -Xmx512m {QUICK}")
os.environ.setdefault("TRAFFIC_JVM", f"-Xmx1g -XX:MaxDirectMemorySize=1g {QUICK}")

# Programs started here are interrupted as at a terminal, also where the tests run in the background of a shell.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Generated cases: a slow machine is no defect, and a check that anyone can repeat chooses the same cases each time.
hypothesis.settings.register_profile(
    "storescope",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    database=None if os.environ.get("CI") else hypothesis.settings.default.database,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("storescope")
hypothesis.settings.register_profile("short", hypothesis.settings.get_profile("storescope"), max_examples=40)
# For packaging/coverage.sh --few: a tracer makes each case several times slower, and a few of them reach every branch.
hypothesis.settings.register_profile("few", hypothesis.settings.get_profile("storescope"), max_examples=10)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Hook: outside of the full form, generated cases are fewer."""
    config = session.config
    if not config.getoption("--full-form") and not config.getoption("--hypothesis-profile"):
        hypothesis.settings.load_profile("short")


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[golden_stores.GoldenStores]:
    """``golden(name)``: the directory of an unpacked golden store; ``golden(name, "recovered")`` after recovery.

    Read-only by agreement, and checked: at the end of the session every unpacked store must be as it was.
    """
    stores = golden_stores.GoldenStores(tmp_path_factory.mktemp("golden"))
    yield stores
    changed = stores.changed()
    assert not changed, "a test changed a golden store: " + "; ".join(changed[:10])


@pytest.fixture(scope="session")
def golden_account() -> Callable[[str, str], Iterator[dict[str, Any]]]:
    """``golden_account(name, file)``: lines of ``expected.jsonl.xz``, ``truth.jsonl.xz``, ``recovered.jsonl.xz``."""
    return golden_stores.account


@pytest.fixture
def unchanged(golden: golden_stores.GoldenStores) -> Iterator[Callable[[Path], Path]]:
    """``unchanged(directory)`` gives the directory back and checks after the test that nothing in it has changed."""
    watched: list[tuple[Path, golden_stores.Fingerprint]] = []

    def watch(directory: Path) -> Path:
        watched.append((directory, golden.fingerprint(directory)))
        return directory

    yield watch
    for directory, fingerprint_before in watched:
        changed = golden_stores.changes(fingerprint_before, golden.fingerprint(directory))
        assert not changed, f"{directory} is not as it was: " + "; ".join(changed[:10])


@pytest.fixture(scope="session", autouse=True)
def _own_priority() -> Iterator[None]:
    """The process of the tests keeps its priority; those that it starts may lower theirs.

    A window that follows a running broker lowers its own. All later tests of that process had a tenth of a processor
    beside the others, and some ran into their time limit.
    """
    process, set_priority = os.getpid(), os.setpriority

    def set_priority_of_others(which: int, who: int, priority: int) -> None:
        if os.getpid() != process:
            set_priority(which, who, priority)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "setpriority", set_priority_of_others)
        priority_before = os.getpriority(os.PRIO_PROCESS, 0)
        yield
        assert os.getpriority(os.PRIO_PROCESS, 0) == priority_before


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Side indexes, settings and unpacked samples of the tests stay out of the user's folders.

    Machine code stays where the program keeps it, so that a run does not pay for compiling again.
    """
    compiled_cache.prepare()
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        for name, folder in (("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")):
            (home / folder).mkdir()
            patch.setenv(name, str(home / folder))
        patch.delenv("COLUMNS", raising=False)  # tables are as wide as where there is no terminal
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Hook: how much of what can go on for hours is done."""
    parser.addoption("--peer-rounds", type=int, default=1, help="seeds whose plans the real RocketMQ store writes")
    parser.addoption("--peer-seed", type=int, default=1, help="the first of these seeds")
    parser.addoption("--fuzz-cases", type=int, default=400, help="mutated stores, each through one reading command")
    parser.addoption("--machine-steps", type=int, default=900, help="steps of each test that acts on a store by chance")
    parser.addoption("--fuzz-first", type=int, default=0, help="number of the first of these cases")
    parser.addoption("--power-runs", type=int, default=1, help="scripted runs per flush mode, cut at every call")
    parser.addoption("--power-first", type=int, default=0, help="number of the first of these runs")
    parser.addoption("--kills", type=int, default=20, help="how often a process under load is killed")
    parser.addoption("--serve-kills", type=int, default=2, help="how often a broker that clients use is killed")
    parser.addoption("--replica-kills", type=int, default=5, help="how often a master, its slave or both are killed")
    parser.addoption("--fault-rounds", type=int, default=5, help="rounds of faults around a broker that clients use")
    parser.addoption("--java-fault-rounds", type=int, default=25, help="the same around Java clients, in full form")
    parser.addoption("--kill-first", type=int, default=0, help="seed of the first store of that campaign")
    parser.addoption(
        "--cluster-kills", type=int, default=1, help="jobs that lose a worker of the cluster in the middle"
    )
    parser.addoption(
        "--spark-full", action="store_true", help="also what starts Spark anew or kills it, a minute each and more"
    )
    parser.addoption("--waiting-messages", type=int, default=100, help="messages of each kind that wait in a store")
    parser.addoption("--clients-full", action="store_true", help="real clients beside real servers too, not ours alone")
    parser.addoption("--full-form", action="store_true", help="all cases of tests that run a few of them otherwise")
    parser.addoption("--scenario-seeds", default="3,8", help="seeds of the scenarios beside real brokers, with commas")
    parser.addoption("--sparks", default="", help="releases of Spark that are fetched and asked, with commas, or all")
    parser.addoption("--refresh-steps", type=int, default=300, help="changes beside an open snapshot")
    parser.addoption("--fuzz-workers", type=int, default=1, help="processes that these cases are divided among")
