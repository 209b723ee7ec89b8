"""What the other machine says of a file reads like the system's own answer."""

from __future__ import annotations

import errno

import pytest

from engine.ssh.file_server import _facts as facts_of
from engine.ssh.remote_facts import RemoteEntry, problem_error, stat_of


def test_facts_become_what_the_system_says(tmp_path):
    (tmp_path / "file").write_bytes(b"units")
    info = (tmp_path / "file").stat()
    assert stat_of(list(facts_of(info))) == info


@pytest.mark.parametrize("facts", [None, [], [1] * 10, ["1"] * 11])
def test_other_values_are_refused(facts):
    with pytest.raises(OSError, match="does not fit"):
        stat_of(facts)


def test_a_link_to_nothing_is_neither_file_nor_folder(tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    problem = {"error": "ENOENT", "text": ""}
    entry = RemoteEntry("/store", "link", list(facts_of((tmp_path / "link").lstat())), problem)
    assert (entry.is_symlink(), entry.is_file(), entry.is_dir()) == (True, False, False)
    with pytest.raises(FileNotFoundError):
        entry.stat()


def test_an_error_that_this_system_does_not_know_keeps_its_text():
    error = problem_error({"error": "EOTHER", "text": "what it said"}, "/store")
    assert (error.errno, error.strerror, error.filename) == (errno.EIO, "what it said", "/store")
