"""Putting back what was kept."""

from __future__ import annotations

import json
import os
import shutil

import golden_stores
import pytest
from undone_stores import kept_in, made, same

from engine.cli.main import main
from engine.mapped import undo
from engine.mapped.backup import JOURNAL


class Stopped(BaseException):
    """As ``kill -9``: nobody cleans up behind it."""


def test_an_undo_that_was_stopped_is_begun_again(tmp_path):
    for number in range(1, 40):
        store = made(tmp_path / f"store{number}")
        before = golden_stores.fingerprint(store)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        (folder,) = kept_in(tmp_path)
        count = 0

        def stop(real, number=number):
            def call(*arguments, **more):
                nonlocal count
                count += 1
                if count == number:
                    raise Stopped
                return real(*arguments, **more)

            return call

        with pytest.MonkeyPatch.context() as patched:
            for name in ("_restore", "_write", "_replace", "_note", "_link"):
                patched.setattr(undo, name, stop(getattr(undo, name)))
            try:
                main(["recover", str(store), "--undo", str(folder), "--yes"])
                ended = True
            except Stopped:
                ended = False
        if not ended:
            assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
        assert same(store, before) == [], number
        shutil.rmtree(store)
        shutil.rmtree(folder)
        if ended:
            assert number > 5
            return
    raise AssertionError("the undo has more steps than were tried")


def test_a_small_file_that_changed_through_a_mapping_is_seen_where_times_stay(tmp_path, capsys):
    """A file system in memory leaves the time of a file as it is where a broker writes through its mapping."""
    store = made(tmp_path / "store")
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path)
    checkpoint = store / "checkpoint"
    times, before = checkpoint.stat(), checkpoint.read_bytes()
    for new, expected in ((bytes(8) + before[8:], 3), (before, 0)):
        checkpoint.write_bytes(new)
        os.utime(checkpoint, ns=(times.st_atime_ns, times.st_mtime_ns))
        capsys.readouterr()
        assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == expected
        assert ("this file was written" in capsys.readouterr().err) == (expected == 3)


def test_a_backup_of_an_earlier_version_has_no_digests_and_is_restored(tmp_path):
    store = made(tmp_path / "store")
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path)
    entries = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    for entry in entries:
        for stamps in (entry.get("before"), entry.get("after")):
            for stamp in (stamps or {}).values():
                del stamp[3:]
    (folder / JOURNAL).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
    assert same(store, before) == []
