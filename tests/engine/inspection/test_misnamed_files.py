"""Log files that are not read because of their names."""

from __future__ import annotations

import gzip

from handmade_stores import LOG_SIZE, healthy

from engine.inspection.misnamed_files import misnamed_log_files
from engine.inspection.snapshot import open_store


def test_packed_and_renamed_log_files_are_recognised(tmp_path):
    root = healthy().write(tmp_path / "store")
    first_file, second_file, *_ = sorted((root / "commitlog").iterdir())
    (root / "commitlog" / f"{first_file.name}.gz").write_bytes(gzip.compress(first_file.read_bytes()))
    first_file.unlink()
    second_file.rename(second_file.with_name("old file"))
    (root / "commitlog" / "readme.txt").write_text("no file of a log")
    (root / "commitlog" / "empty.bak").touch()
    with open_store(root) as store:
        files = {(file.name, file.offset, file.is_packed, file.own_name) for file in misnamed_log_files(store)}
    assert files == {
        (f"{0:020d}.gz", 0, True, f"{0:020d}"),
        ("old file", LOG_SIZE, False, f"{LOG_SIZE:020d}"),
    }
