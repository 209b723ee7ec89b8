"""Every job on a master and two workers as processes: the answers of one machine, also where a part of it is killed."""

import functools
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile
from spark_cluster import PROJECT, Cluster, Driver, kill_all, until

from engine.cli.commands.pipeline import JOBS
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

pytestmark = [pytest.mark.spark, pytest.mark.golden, pytest.mark.timeout(900)]
KILLED = sorted(JOBS, key=lambda job: (job != "rebuild", job != "export", job != "import"))
"""The jobs in the order in which they are chosen to lose a worker: those that write first."""
VOLATILE = {
    "seconds", "sessionSeconds", "unitsPerSecond", "tasks", "triedAgain", "master", "logFile", "out", "path",
    "keptPieces", "bytesWritten",
}  # fmt: skip
"""What a record may say otherwise on the next run."""
SPLIT = ("--split-bytes", "50_000")


@pytest.fixture(scope="session")
def fleet(golden, tmp_path_factory):
    """Three brokers: a whole store, a damaged one, and one without its queues."""
    folder = tmp_path_factory.mktemp("fleet")
    for broker, name in (("a", "broker-orders"), ("b", "crash-flip-5.3.3"), ("c", "queues-gone-5.3.3")):
        store = next(path.parent for path in sorted(golden(name).rglob("commitlog")))
        shutil.copytree(store, folder / broker / "store")
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    one = Cluster(tmp_path_factory.mktemp("cluster"))
    yield one
    one.stop()


@pytest.fixture(scope="session")
def alone(cluster, fleet, tmp_path_factory):
    """``alone(job)``: what a job answers on this machine, without a cluster; asked once."""
    folder = tmp_path_factory.mktemp("alone")
    driver = Driver("local[2]", folder / "driver", cluster.environment, sys.executable)
    yield functools.cache(lambda job: Asked(fleet, folder).run(driver, job))
    driver.stop()


@pytest.fixture(scope="module")
def driver(cluster, alone, tmp_path_factory):
    """One session on the cluster."""
    one = Driver(cluster.url, tmp_path_factory.mktemp("on-cluster") / "driver", cluster.environment, cluster.python)
    yield one
    one.stop()


class Asked:
    """The jobs as commands over a fleet; what they write goes below ``folder``."""

    def __init__(self, fleet, folder):
        self._stores, self._folder = fleet / "*" / "store", folder
        self._keys = ["nowhere"]
        for store in sorted(fleet.glob("*/store")):
            with open_store(store) as one:
                units = (item for item in one.units() if isinstance(item, Unit) and item.unique_key)
                self._keys += [unit.unique_key for unit in itertools.islice(units, 0, 400, 100)]

    def words(self, job):
        """The command of a job."""
        out = ["--out", self._folder / job]
        more = {
            "stats": ["--by", "queue,tag,producer,hour,key"],
            "rebuild": [*out, "--compare"],
            "export": [*out, "--format", "parquet"],
            "trace": [word for key in self._keys for word in ("--key", key)],
        }
        if job == "import":
            whole = str(self._stores).replace("*", "a")
            return ["import", self._folder / "export", "--store", whole, *out]
        return [job, self._stores, *more.get(job, []), *SPLIT]

    def run(self, driver, job, middle=None):
        """Run a job: what it says and what it writes, without what differs from run to run."""
        if job == "import" and not (self._folder / "export").exists():
            driver.run(self.words("export"))
        code, said, _ = driver.run(self.words(job), middle)
        driver.said = said
        return code, plainly(said), self.written(job)

    def written(self, job):
        """Digests of what a job wrote."""
        folder = self._folder / job
        if not folder.exists():
            return None
        left = [path.name for path in self._folder.iterdir() if path.name.startswith(".")]
        assert left == [], "what was staged is still there"
        if job == "export":
            return sorted(
                f"{path.parent.relative_to(folder)} {row}"
                for path in folder.rglob("*.parquet")
                for row in ParquetFile(path).read().to_pylist()
            )
        found = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            kind = path.relative_to(folder)
            if path.name in {"checkpoint", "lock"} or "config" in kind.parts:
                continue
            # An index file is named after the time when it was begun.
            name = kind.with_name("index file") if "index" in kind.parts else kind
            found.append((str(name), hashlib.sha256(path.read_bytes()).hexdigest()))
        return found


def plainly(said):
    """Records that can be compared."""
    kept = [{k: v for k, v in record.items() if k not in VOLATILE} for record in said if record["type"] != "progress"]
    return sorted(json.dumps(record, sort_keys=True) for record in kept)


def without_units(said):
    """A summary counts the units that its own run has walked, and not those of pieces that it kept."""
    read = [json.loads(line) for line in said]
    return [{k: v for k, v in one.items() if (one["type"], k) != ("jobSummary", "units")} for one in read]


@pytest.mark.spark_full
def test_a_driver_killed_in_rebuild_leaves_nothing_half_done(fleet, alone, cluster, tmp_path, request):
    """The command as a user gives it; the next run takes what is whole of the staged pieces."""
    asked, (same, expected, files) = Asked(fleet, tmp_path), alone("rebuild")
    words = [sys.executable, "-c", "from engine.cli.main import main; raise SystemExit(main())", "pipeline"]
    words += [*map(str, asked.words("rebuild")), "--master", cluster.url, "--log-file", str(tmp_path / "spark.log")]
    environment = {**cluster.environment, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": str(cluster.python)}

    def parts():
        return [path for path in tmp_path.glob(".rebuild*/**/*.json") if path.is_file()]

    with (tmp_path / "said").open("wb") as said:
        first = subprocess.Popen(
            words, stdout=said, stderr=said, env=environment, cwd=tmp_path, start_new_session=True
        )  # fmt: skip
    try:
        until("the first parts", lambda: first.poll() is not None or len(parts()) > 3)
        executors = [cluster.executor_of(worker) for worker in cluster.workers]
        for executor in executors:
            os.kill(executor, signal.SIGSTOP)
    finally:
        kill_all(first)
    for executor in executors:
        os.kill(executor, signal.SIGCONT)
    assert parts(), (tmp_path / "said").read_text()
    assert not (tmp_path / "rebuild").exists()
    until("a free cluster", cluster.is_free)
    driver = request.getfixturevalue("driver")
    code, said, written = asked.run(driver, "rebuild")
    assert (code, without_units(said), written) == (same, without_units(expected), files)
    assert sum(record.get("keptPieces", 0) for record in driver.said) > 3


def test_workers_run_elsewhere_without_the_project_and_have_the_engine(cluster, driver):
    driver.await_executors(2)
    seen = driver.ask(probe=True)
    assert len(seen) == 2
    for folder, package, module, viewer, compiled in seen:
        assert Path(folder).is_relative_to(cluster.folder)
        assert package.endswith("storescope-engine.zip/engine/__init__.py")
        assert not Path(module).is_relative_to(PROJECT)
        assert (viewer, compiled) == ("None", True)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_answers_what_it_answers_on_one_machine(fleet, alone, driver, tmp_path, job):
    expected = alone(job)
    driver.await_executors(2)
    assert Asked(fleet, tmp_path).run(driver, job) == expected


def pytest_generate_tests(metafunc):
    """Killing is dear: of how many jobs is said by an option."""
    if "killed_job" in metafunc.fixturenames:
        metafunc.parametrize("killed_job", KILLED[: metafunc.config.getoption("--cluster-kills")])


def test_a_worker_killed_in_the_middle_changes_no_answer(fleet, alone, cluster, driver, tmp_path, killed_job):
    """One of the two executors is given tasks and stops to move; when the other has done its own, it is killed."""
    asked, job = Asked(fleet, tmp_path), killed_job
    expected = alone(job)
    if job == "import":
        driver.run(asked.words("export"))
    driver.await_executors(2)
    with cluster.killed_in_the_middle() as kill:
        assert asked.run(driver, job, kill) == expected
    assert driver.said[-1]["triedAgain"] >= 1
