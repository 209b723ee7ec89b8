"""What an earlier run has left of a rebuild."""

from __future__ import annotations

import json

import pytest

from engine.errors import StoreError
from engine.pipeline.rebuild_staging import staged


def test_what_another_plan_left_is_begun_anew(tmp_path):
    with staged(tmp_path / "out", "one", lambda: 1) as (staging, _):
        kept = json.loads((staging / "plan.json").read_text())
    assert kept == {"plan": "one", "begun": 1}
    left = tmp_path / ".out.rebuild"
    (left / "work").mkdir(parents=True)
    (left / "work" / "part").write_text("x")
    (left / "plan.json").write_text(json.dumps(kept))
    with staged(tmp_path / "out", "one", lambda: 2) as (staging, begun):
        assert (begun, (staging / "work" / "part").exists()) == (1, True)
        second = staged(tmp_path / "out", "one", lambda: 3)
        with pytest.raises(StoreError, match="another rebuild"):
            second.__enter__()
    assert not left.exists()
    left.mkdir()
    (left / "plan.json").write_text(json.dumps(kept))
    with staged(tmp_path / "out", "two", lambda: 2) as (staging, begun):
        assert (begun, list((staging / "work").iterdir())) == (2, [])
