"""One Spark session for all tests of a process."""

import pytest

from engine.pipeline import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on two cores, its chatter in a file; ended, and waited for, behind the last test."""
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    yield session.start("local[2]", log_file=folder / "spark.log", memory="1g", settings=settings)
    session.stop()
