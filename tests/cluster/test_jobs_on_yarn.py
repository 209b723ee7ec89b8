"""Jobs on a YARN, by the lines of the README, give the answers of one machine."""

import subprocess
import sys

import pytest
from pipeline_job_runs import JobCommands
from spark_cluster import PROJECT, Driver, assert_elsewhere
from yarn_cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.spark_full, pytest.mark.peer, pytest.mark.golden, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory):
    cluster = YarnCluster(tmp_path_factory.mktemp("yarn"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def driver(yarn, tmp_path_factory):
    """Run one session on it."""
    driver_ = Driver("yarn", tmp_path_factory.mktemp("on-yarn") / "driver", yarn.environment, yarn.python)
    yield driver_
    driver_.stop()


def test_the_line_of_the_readme_runs(fleet, yarn, tmp_path):
    """A process of its own, without settings beyond the environment and ``spark-defaults.conf``."""
    words = [sys.executable, "-c", "from engine.cli.main import main; raise SystemExit(main())", "pipeline", "stats"]
    process = subprocess.run(
        [*words, f"{fleet}/*/store", "--master", "yarn", "--log-file", tmp_path / "spark.log"],
        env={**yarn.environment, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": str(yarn.python)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, ""), (tmp_path / "spark.log").read_text()[-3000:]
    assert "Spark on yarn began" in process.stdout


def test_containers_have_the_engine_and_not_the_project(yarn, driver):
    driver.await_executors(2)
    assert_elsewhere(driver.ask(probe=True), yarn.folder)


@pytest.mark.parametrize("job", ["stats", "verify", "rebuild", "export", "import", "trace"])
def test_a_job_answers_what_it_answers_on_one_machine(fleet, alone, driver, tmp_path, job):
    expected = alone(job)
    driver.await_executors(2)
    assert JobCommands(fleet, tmp_path).run(driver, job) == expected


def test_a_queue_without_room_for_an_executor_is_told(yarn, tmp_path):
    """The application's own container takes half of the queue. Spark would wait until somebody stops it."""
    script = (
        "from engine.pipeline import session\n"
        "narrow = {'spark.yarn.queue': 'narrow', 'spark.executor.memory': '1100m'}\n"
        "session.start('yarn', 'spark.log', settings=narrow, timeout_s=60)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script],
        env={**yarn.environment, "PYTHONPATH": str(PROJECT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.stderr.endswith(
        "CannotStart: the master yarn provided no executor within 60 s; Spark's messages are in spark.log\n"
    )
