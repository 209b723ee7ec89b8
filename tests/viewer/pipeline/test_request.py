"""What a pipeline job is asked, how it stands, and what its results become: no process, no Spark."""

from __future__ import annotations

import pytest

from engine.cli.main import build_parser
from viewer.pipeline.request import JOBS, LOCAL, Wish, join_places, split_places

WISHES = (
    Wish("stats", ("/data/a store", "fleet/*/store")),
    Wish("verify", ("-odd",), master="spark://10.24.0.8:7077"),
    Wish("rebuild", ("/data/store",), out="/new/place"),
    Wish("export", ("/data/store",), out="/new/place", format="csv"),
    Wish("import", ("/an/export",), out="/new/store"),
    Wish("trace", ("/data/store",), keys=("SO-1", "--SO-2"), keys_file="/keys.txt"),
)


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.job)
def test_the_command_line_knows_every_job_and_each_of_its_words(wish: Wish) -> None:
    assert not wish.fault()
    args = build_parser("pipeline").parse_args(wish.arguments("/tmp/spark.log"))
    assert args.job == wish.job
    assert args.as_json
    assert args.log_file == "/tmp/spark.log"
    assert args.master == (None if wish.master == LOCAL else wish.master)  # without the word small stores need no Spark
    assert tuple(getattr(args, "stores", None) or (args.source,)) == wish.places
    assert getattr(args, "out", wish.out) == wish.out
    if wish.job == "trace":
        assert tuple(args.key) == wish.keys
    plain = wish.command()
    assert plain.startswith(f"storescope pipeline {wish.job}")
    assert "--json" not in plain


def test_the_form_offers_what_the_command_line_has() -> None:
    from engine.cli.commands.pipeline import JOBS as KNOWN

    assert {kind.name for kind in JOBS} == set(KNOWN)


def test_what_is_missing_is_said() -> None:
    assert "store" in Wish("stats").fault()
    assert "export" in Wish("import", out="/x").fault().lower()
    assert "folder" in Wish("rebuild", ("/s",)).fault()
    assert "key" in Wish("trace", ("/s",)).fault()
    assert "master" in Wish("stats", ("/s",), master="").fault()


def test_places_with_blanks_come_back_whole() -> None:
    places = ("/data/a store", "fleet/*/store", "it's")
    assert split_places(join_places(places)) == places
    assert split_places("/data '") is None
    assert split_places("a a b") == ("a", "b")
