"""Every job on a master and two workers as processes gives the answers of one machine, even if a part of it is
killed.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline_job_runs import JobCommands
from spark_cluster import PROJECT, Cluster, Driver, assert_elsewhere, kill_all, wait_until

from engine.cli.commands.pipeline import JOBS

pytestmark = [pytest.mark.spark, pytest.mark.golden, pytest.mark.timeout(900)]
KILLED = sorted(JOBS, key=lambda job: (job != "rebuild", job != "export", job != "import"))
"""The jobs in the order in which they are chosen to lose a worker: those that write first."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    item = Cluster(tmp_path_factory.mktemp("cluster"))
    yield item
    item.stop()


@pytest.fixture(scope="module")
def driver(cluster, alone, tmp_path_factory):
    """Run one session on the cluster."""
    driver_ = Driver(cluster.url, tmp_path_factory.mktemp("on-cluster") / "driver", cluster.environment, cluster.python)
    yield driver_
    driver_.stop()


def without_units(lines):
    """Remove the units of a summary, which counts only those that its own run has walked, without pieces that it
    kept.
    """
    read = [json.loads(line) for line in lines]
    return [{k: v for k, v in record.items() if (record["type"], k) != ("jobSummary", "units")} for record in read]


@pytest.mark.spark_full
def test_a_driver_killed_in_rebuild_leaves_nothing_half_done(fleet, alone, cluster, tmp_path, request):
    """The command runs like a user's; the next run takes the complete ones of the staged pieces."""
    commands, (same, expected, files) = JobCommands(fleet, tmp_path), alone("rebuild")
    words = [sys.executable, "-c", "from engine.cli.main import main; raise SystemExit(main())", "pipeline"]
    words += [*map(str, commands.words("rebuild")), "--master", cluster.url, "--log-file", str(tmp_path / "spark.log")]
    environment = {**cluster.environment, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": str(cluster.python)}

    def parts():
        return [path for path in tmp_path.glob(".rebuild*/**/*.json") if path.is_file()]

    with (tmp_path / "said").open("wb") as output:
        killed = subprocess.Popen(
            words, stdout=output, stderr=output, env=environment, cwd=tmp_path, start_new_session=True
        )
    try:
        wait_until("the first parts", lambda: killed.poll() is not None or len(parts()) > 3)
        executors = [cluster.executor_of(worker) for worker in cluster.workers]
        for executor in executors:
            os.kill(executor, signal.SIGSTOP)
    finally:
        kill_all(killed)
    for executor in executors:
        os.kill(executor, signal.SIGCONT)
    assert parts(), (tmp_path / "said").read_text()
    assert not (tmp_path / "rebuild").exists()
    wait_until("a free cluster", cluster.is_free)
    driver = request.getfixturevalue("driver")
    code, output, written = commands.run(driver, "rebuild")
    assert (code, without_units(output), written) == (same, without_units(expected), files)
    assert sum(record.get("keptPieces", 0) for record in driver.records) > 3


def test_workers_run_elsewhere_without_the_project_and_have_the_engine(cluster, driver):
    driver.await_executors(2)
    assert_elsewhere(driver.ask(probe=True), cluster.folder)


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("job", JOBS)
def test_a_job_answers_what_it_answers_on_one_machine(fleet, alone, driver, tmp_path, job):
    expected = alone(job)
    driver.await_executors(2)
    assert JobCommands(fleet, tmp_path).run(driver, job) == expected


def test_stores_named_from_here_are_found_by_workers_that_run_elsewhere(fleet, alone, driver, tmp_path):
    """With a relative name all of a store was one span of damage, because no file had that name in a worker's
    folder.
    """
    path = driver.folder / "fleet"
    path.symlink_to(fleet)
    code, output, _ = JobCommands(Path("fleet"), tmp_path).run(driver, "stats")
    assert (code, [line.replace(str(path), str(fleet)) for line in output], None) == alone("stats")


def test_stores_that_workers_do_not_see_are_told_and_not_called_damaged(fleet, driver, tmp_path):
    """A folder that only this process can see replaces a disk of this machine alone."""
    (driver.folder / "here alone").symlink_to(fleet)
    words = JobCommands(Path("/proc/self/cwd/here alone"), tmp_path).words("stats")
    code, output, words = driver.run(words)
    assert (code, output) == (3, [])
    log = "/proc/self/cwd/here alone/a/store/commitlog"
    assert words.startswith(f"storescope: {log}: executors do not see it"), words


def pytest_generate_tests(metafunc):
    """Hook: killing is expensive; an option sets the number of jobs."""
    if "killed_job" in metafunc.fixturenames:
        metafunc.parametrize("killed_job", KILLED[: metafunc.config.getoption("--cluster-kills")])


def test_a_worker_killed_in_the_middle_changes_no_answer(fleet, alone, cluster, driver, tmp_path, killed_job):
    """An executor is given tasks and is stopped; after the other has done its own, the first is killed."""
    commands, job = JobCommands(fleet, tmp_path), killed_job
    expected = alone(job)
    # Whether the workers see the stores is asked once a session, of all of them.
    driver.run(commands.words("export" if job == "import" else "stats"))
    driver.await_executors(2)
    with cluster.killed_in_the_middle() as kill:
        assert commands.run(driver, job, kill) == expected
    assert driver.records[-1]["triedAgain"] >= 1
