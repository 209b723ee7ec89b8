"""``pipeline``: jobs over whole stores and fleets on Spark, on this machine or a cluster.

``--json`` gives ``progress`` records between the others, a few a second while something changes: ``job``, ``step``
(what it does, in words), ``stages`` [{``stage``, ``name``, ``done``, ``tasks``, ``running``, ``triedAgain``}],
``done`` and ``tasks`` of all stages, ``units`` and ``bytes`` of tasks that have ended, ``totalBytes`` (0: not known),
``unitsPerSecond``, ``seconds`` of the step. ``--quiet`` leaves them out. The last record is the ``jobSummary``. SIGINT
stops a job: what runs on the cluster is cancelled, what was staged is removed, the exit code is 130.
"""

from __future__ import annotations

import importlib
from typing import Any

from engine.cli.options import Parser, add_command

JOBS = ("stats", "verify", "rebuild", "export", "import", "trace")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "pipeline",
        "pipeline stats 'fleet/*/store' --by topic",
        "pipeline verify --help",
    )
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True, parser_class=Parser)
    for name in JOBS:
        importlib.import_module(f"engine.cli.pipeline_{name}").register(jobs)
