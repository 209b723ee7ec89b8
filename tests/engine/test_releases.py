"""The table of releases: valid rows, and what the program derives from it."""

from __future__ import annotations

import itertools
from dataclasses import fields

import agree
import pytest
from handmade_stores import healthy

from engine import releases
from engine.cli.main import main


def test_each_row_is_found_by_its_name_and_the_newest_is_the_last():
    assert list(releases.TABLE) == list(releases.NAMES)
    assert all(releases.rules_of(name).name == name for name in releases.NAMES)
    assert releases.NEWEST == "5.5"


def test_a_release_differs_from_the_one_before_it():
    rows = [releases.rules_of(name) for name in releases.NAMES]
    for release, next_release in itertools.pairwise(rows):
        differing = {
            field.name
            for field in fields(next_release)
            if getattr(next_release, field.name) != getattr(release, field.name)
        }
        assert differing > {"name", "covers", "patch"}


def test_an_unknown_release_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"4\.9, 5\.3, 5\.4, 5\.5, not '5\.6'"):
        releases.parse("5.6")


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.3.0", "4.9"),
        ("4.9.8", "4.9"),
        ("5.0.0", "5.3"),
        ("5.3.3", "5.3"),
        ("5.4.0-SNAPSHOT", "5.4"),
        ("5.5.1", "5.5"),
        ("5.9.0", "5.5"),
        ("6.0.0", None),
        ("version 9999", None),
    ],
)
def test_a_version_follows_the_rules_of_one_release(version, release):
    assert releases.of_version(version) == release


@pytest.mark.parametrize("option", ["--release", "--like"])
@pytest.mark.parametrize("release", releases.NAMES)
def test_a_command_answers_for_the_requested_release(golden, option, release):
    plan = agree.records_of("recover", golden("clean-5.3.3"), "--plan", option, release)[0]
    assert (plan["like"], plan["release"]) == (release, release)


def test_positions_name_the_requested_release(golden):
    for release, name in (("4.9", "RocketMQ 4.9"), ("5.4", "RocketMQ 5.4")):
        (positions,) = agree.records_of("positions", golden("clean-5.3.3"), "--release", release)
        assert positions["confirm"]["how"].startswith(f"no broker runs: the next start of {name}")


def test_where_names_the_requested_release(tmp_path):
    store = healthy(20)
    store.units[-1].dispatched = store.units[-2].dispatched = False
    root = store.write(tmp_path / "store", checkpoint=False, abort=True)
    for option, release in (("--release", "4.9"), ("--like", "5.4")):
        (result,) = agree.records_of("where", root, str(store.units[-1].offset), option, release)
        assert f"the next start of RocketMQ {release}" in str(result)


@pytest.mark.parametrize("words", [["config"], ["groups"], ["consumerProgress", "-s"]])
def test_tables_are_read_as_by_the_requested_release(tmp_path, words, capsys):
    """RocketMQ 4.9 and 5.3 accept a field name without quotes. 5.5 fails to start with it."""
    root = healthy().write(tmp_path / "store")
    (root / "config").mkdir(exist_ok=True)
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (root / "config" / name).write_text('{offsetTable:{"Orders@billing":{"0":1}}}')
    main([*words, str(root), "--release", "5.3"])
    assert "does not start" not in "".join(capsys.readouterr())
    main([*words, str(root), "--release", "5.5"])
    assert "does not start" in "".join(capsys.readouterr())


def test_an_unknown_release_is_a_one_line_error(golden, capsys):
    assert main(["recover", str(golden("clean-5.3.3")), "--plan", "--release", "5.6"]) == 2
    assert "--release" in capsys.readouterr().err
