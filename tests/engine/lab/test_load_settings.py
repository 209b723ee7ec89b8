"""Settings of a load."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.lab.load_settings import LoadSettings


@pytest.mark.parametrize(
    ("name", "value"), [("producers", 0), ("rate", -1), ("batch", 2000), ("topics", 0), ("body_size", 1 << 30)]
)
def test_a_setting_out_of_its_range_is_named(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{name}: expected .* found"):
        LoadSettings(**{name: value})  # type: ignore[arg-type]
