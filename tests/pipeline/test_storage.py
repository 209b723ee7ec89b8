"""Storages that hold stores."""

from __future__ import annotations

import pytest
from s3_server import KEYS, s3_server, upload

from engine.errors import CannotRead, UsageError
from engine.pipeline import schema, storage
from engine.pipeline.files import find_stores
from engine.pipeline.options import LogOptions, Options
from engine.pipeline.splits import LOOK_BACK_BYTES, plan
from engine.pipeline.storage import open_path, storage_of
from engine.pipeline.unit_rows import rows_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "path",
    ["hdfs://name/x", "hdfs:/x", "viewfs://x/y", "https://x/y", "gs://b/store", "abfss://c@a/store", "wasb://x/y"],
)
def test_a_storage_that_nothing_reads_is_told_in_a_sentence(path):
    """The error was "Unable to load libjvm", after a stack of 1,000 characters; ``gs://`` gave no answer for 15
    minutes.
    """
    with pytest.raises(UsageError, match=r"is not read here: give the path of a disk that all machines see"):
        Options({"path": path}, schema.CQ)
    with pytest.raises(UsageError, match="is not read here"):
        find_stores(path)


NAMES = ("crash-flip-5.3.3", "multi-queue-ext-5.3.3")


@pytest.fixture(scope="module")
def server(golden):
    """Run a server that holds two stores as ``fleet/NAME/store``."""
    with s3_server() as url:
        for name in NAMES:
            upload(golden(name), "fleet", f"{name}/store", url)
        yield url


@pytest.fixture
def s3(server, monkeypatch):
    """Set the environment that names the server, and return its address."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    storage._arrow_root.cache_clear()
    yield server
    storage._arrow_root.cache_clear()


def test_only_ranges_are_asked_for(s3, golden, monkeypatch):
    """Never more at once than a block or the look back, whatever the length of the object."""
    sizes = []
    read = storage.ObjectFile.read

    def noted(self, position, size):
        sizes.append(size)
        return read(self, position, size)

    monkeypatch.setattr(storage.ObjectFile, "read", noted)
    options = LogOptions({"path": f"s3://fleet/{NAMES[0]}/store", "splitBytes": "50000", "columns": "topic"})
    split = plan(options.stores(), options.split_bytes).splits[3]
    sizes.clear()
    assert list(rows_of([split], options.columns, options))
    assert 0 < max(sizes) <= LOOK_BACK_BYTES


def test_a_failed_request_is_an_error_of_one_line(s3, monkeypatch):
    with pytest.raises(CannotRead, match="cannot be read") as caught, open_path("s3://fleet/nothing"):
        pass
    assert "\n" not in str(caught.value)
    storage._arrow_root.cache_clear()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3 + "0")
    files, path = storage_of("s3://fleet/a/store")
    with pytest.raises(CannotRead, match="cannot be"):
        files.listing(path)
