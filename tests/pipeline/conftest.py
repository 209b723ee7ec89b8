"""Fixtures for the pipeline: a Spark session for all tests of a process."""

import json

import pytest

from engine.cli.main import main
from engine.pipeline import session

LOCAL = ("--master", "local[2]", "--json")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on two cores that logs into a file; the last test ends it and waits for its end."""
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    yield session.start("local[2]", log_file=folder / "spark.log", memory="1g", settings=settings)
    session.stop()


@pytest.fixture
def pipeline(spark, capsys, tmp_path):
    """``pipeline("stats", STORE, code=0)``: run a job as a command; return its records and its output."""

    def run(*words, code=0):
        capsys.readouterr()
        assert main(["pipeline", *map(str, words), *LOCAL, "--log-file", str(tmp_path / "spark.log")]) == code
        output = capsys.readouterr()
        return [json.loads(line) for line in output.out.splitlines()], output.err

    return run
