"""Putting back what was kept."""

from __future__ import annotations

import shutil

import golden_stores
import pytest
from undone_stores import kept_in, made, same

from engine.cli.main import main
from engine.mapped import undo


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
