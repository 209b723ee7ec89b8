"""The measured stores are valid, both sides read the same units, and every row has figures."""

import shutil

import pytest

from engine.bench import reads as bench

SIZE = 2 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.mark.parametrize("name", ["scan", "header"])
def test_walks_are_measured_for_both_sizes_of_bodies(folder, name):
    rows = list(bench.run(name, folder, repeats=1, size=SIZE))
    assert [row["log"] for row in rows] == ["200-byte bodies", "1k-byte bodies"]
    for row in rows:
        assert row["seconds"] > 0
        assert row["units"] > 1000
        assert (row["ratio"] is None) == (shutil.which("cc") is None)


def test_an_unknown_measurement_is_refused(folder):
    with pytest.raises(KeyError):
        list(bench.run("nothing", folder))
