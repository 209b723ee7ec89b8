"""Jobs for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from viewer.pipeline.jobs import PipelineRuns


@pytest.fixture
def runs(run: Callable[[Any], Any]) -> Iterator[PipelineRuns]:
    """Jobs without a window; those that still run are stopped at the end."""
    pipeline_runs = PipelineRuns()
    yield pipeline_runs
    run(pipeline_runs.end())
