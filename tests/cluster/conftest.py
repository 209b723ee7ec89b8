"""A fleet for all tests of clusters, and the answers of one machine about it."""

import functools
import shutil
import sys

import pytest
from pipeline_job_runs import JobCommands
from spark_cluster import Driver, _environment


@pytest.fixture(scope="session")
def fleet(golden, tmp_path_factory):
    """Return three brokers: a whole store, a damaged one, and one without its queues."""
    folder = tmp_path_factory.mktemp("fleet")
    for broker, name in (("a", "broker-orders"), ("b", "crash-flip-5.3.3"), ("c", "queues-gone-5.3.3")):
        store = next(path.parent for path in sorted(golden(name).rglob("commitlog")))
        shutil.copytree(store, folder / broker / "store")
    return folder


@pytest.fixture(scope="session")
def alone(fleet, tmp_path_factory):
    """``alone(job)``: run a job once on this machine, without a cluster, and return its result."""
    folder = tmp_path_factory.mktemp("alone")
    driver = Driver("local[2]", folder / "driver", _environment(folder), sys.executable)
    yield functools.cache(lambda job: JobCommands(fleet, folder).run(driver, job))
    driver.stop()
