"""Executors of a cluster read a fleet from an object storage, each by itself, without a shared disk: the same
answers.
"""

import json

import pytest
from pipeline_job_runs import JobCommands, plainly
from s3_server import KEYS, s3_server, upload
from spark_cluster import Cluster, Driver

pytestmark = [pytest.mark.spark, pytest.mark.spark_full, pytest.mark.golden, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(fleet):
    """Run a server with the fleet as ``fleet/BROKER/store``."""
    with s3_server() as url:
        upload(fleet, "backups", "fleet", url)
        yield url


@pytest.fixture(scope="module")
def driver(server, tmp_path_factory):
    """Run a session whose executors get the server from ``spark-defaults.conf``, like in the README."""
    folder = tmp_path_factory.mktemp("s3")
    present = {**KEYS, "AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1"}
    (folder / "conf").mkdir()
    lines = [f"spark.executorEnv.{name} {value}\n" for name, value in present.items()]
    (folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
    (folder / "cluster").mkdir()
    cluster = Cluster(folder / "cluster", workers=1)
    environment = {**cluster.environment, **present, "SPARK_CONF_DIR": str(folder / "conf")}
    item = Driver(cluster.url, folder / "driver", environment, cluster.python)
    yield item
    item.stop()
    cluster.stop()


def in_the_bucket(words, fleet):
    return [str(word).replace(str(fleet), "s3://backups/fleet") for word in words]


def test_sums_over_a_bucket_are_those_of_the_disk(fleet, alone, driver, tmp_path):
    code, output, _ = driver.run(in_the_bucket(JobCommands(fleet, tmp_path).words("stats"), fleet))
    expected = alone("stats")
    records = [json.loads(line.replace(str(fleet), "s3://backups/fleet")) for line in expected[1]]
    assert (code, plainly(output)) == (expected[0], plainly(records))
    assert len(records) > 10


def test_rows_of_a_bucket_are_those_of_the_disk(fleet, alone, driver, tmp_path):
    commands, expected = JobCommands(fleet, tmp_path), alone("export")
    code, _, err = driver.run(in_the_bucket(commands.words("export"), fleet))
    assert (code, err) == (expected[0], "")
    results = [row.replace("s3://backups/fleet", str(fleet)) for row in commands.written("export")]
    assert sorted(results) == sorted(expected[2])
    assert len(results) > 100
