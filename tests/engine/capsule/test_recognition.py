"""A capsule is known by its first bytes."""

from __future__ import annotations

import pytest

from engine.capsule.recognition import MAGIC, CapsuleIsReadOnly, is_capsule, refuse_capsule


def test_only_a_file_that_begins_as_one_is_a_capsule(tmp_path):
    file = tmp_path / "any-name"
    file.write_bytes(MAGIC + b"more")
    assert is_capsule(file)
    with pytest.raises(CapsuleIsReadOnly, match="can be read, but not changed"):
        refuse_capsule(file)
    file.write_bytes(MAGIC[:-1])
    for path in (file, tmp_path, tmp_path / "none", "a\0b"):
        assert not is_capsule(path)
        refuse_capsule(path)
