"""The table of releases: what a new row may be made of, and what the program takes from it."""

from __future__ import annotations

import itertools
from dataclasses import fields

import agree
import pytest

from engine import releases
from engine.cli.main import main


def test_each_row_is_found_by_its_name_and_the_newest_is_the_last():
    assert list(releases.TABLE) == list(releases.NAMES)
    assert all(releases.of(name).name == name for name in releases.NAMES)
    assert releases.NEWEST == "5.5"


def test_a_release_differs_from_the_one_before_it():
    rows = [releases.of(name) for name in releases.NAMES]
    for before, after in itertools.pairwise(rows):
        differing = {field.name for field in fields(after) if getattr(after, field.name) != getattr(before, field.name)}
        assert differing > {"name", "covers", "patch"}


def test_a_name_that_no_release_has_is_refused_with_the_names():
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
def test_a_command_speaks_for_the_release_that_is_asked_for(golden, option, release):
    plan = agree.records_of("recover", golden("clean-5.3.3"), "--plan", option, release)[0]
    assert (plan["like"], plan["release"]) == (release, release)


def test_a_release_that_is_not_known_ends_in_one_line(golden, capsys):
    assert main(["recover", str(golden("clean-5.3.3")), "--plan", "--release", "5.6"]) == 2
    assert "--release" in capsys.readouterr().err
