"""Requests, states and results of pipeline jobs, without a process or Spark."""

from __future__ import annotations

import pytest

from engine.cli.main import build_parser
from viewer.pipeline.request import JOBS, LOCAL, JobRequest, join_places, split_places

WISHES = (
    JobRequest("stats", ("/data/a store", "fleet/*/store")),
    JobRequest("verify", ("-odd",), master="spark://10.24.0.8:7077"),
    JobRequest("rebuild", ("/data/store",), out="/new/place"),
    JobRequest("export", ("/data/store",), out="/new/place", format="csv"),
    JobRequest("import", ("/an/export",), out="/new/store"),
    JobRequest("trace", ("/data/store",), keys=("SO-1", "--SO-2"), keys_file="/keys.txt"),
)


@pytest.mark.parametrize("job_request", WISHES, ids=lambda job_request: job_request.job)
def test_the_command_line_accepts_every_job_and_its_options(job_request: JobRequest) -> None:
    assert not job_request.fault()
    args = build_parser("pipeline").parse_args(job_request.arguments("/tmp/spark.log"))
    assert args.job == job_request.job
    assert args.as_json
    assert args.log_file == "/tmp/spark.log"
    assert args.master == (
        None if job_request.master == LOCAL else job_request.master
    )  # without the option, small stores need no Spark
    assert tuple(getattr(args, "stores", None) or (args.source,)) == job_request.places
    assert getattr(args, "out", job_request.out) == job_request.out
    if job_request.job == "trace":
        assert tuple(args.key) == job_request.keys
    plain = job_request.command()
    assert plain.startswith(f"storescope pipeline {job_request.job}")
    assert "--json" not in plain


def test_the_form_offers_what_the_command_line_has() -> None:
    from engine.cli.commands.pipeline import JOBS as KNOWN

    assert {kind.name for kind in JOBS} == set(KNOWN)


def test_missing_input_is_reported() -> None:
    assert "store" in JobRequest("stats").fault()
    assert "export" in JobRequest("import", out="/x").fault().lower()
    assert "folder" in JobRequest("rebuild", ("/s",)).fault()
    assert "key" in JobRequest("trace", ("/s",)).fault()
    assert "master" in JobRequest("stats", ("/s",), master="").fault()


def test_paths_with_blanks_round_trip() -> None:
    places = ("/data/a store", "fleet/*/store", "it's")
    assert split_places(join_places(places)) == places
    assert split_places("/data '") is None
    assert split_places("a a b") == ("a", "b")
