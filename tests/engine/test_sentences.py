"""A sentence is finished English text, and keeps the template and the values that made it."""

from __future__ import annotations

import copy
import json
import pickle

from engine.english import capital, small
from engine.errors import NotAStore
from engine.releases import name_next_start
from engine.sentences import (
    Sentence,
    join,
    object_hook,
    plain,
    plural,
    sentence,
    to_json,
    with_and,
    with_text,
    without_beginning,
)


def test_a_sentence_is_its_english():
    text = sentence("{file} is empty", file="topics.json")
    assert text == "topics.json is empty"
    assert (text.id, text.params) == ("{file} is empty", {"file": "topics.json"})
    assert json.dumps([text]) == '["topics.json is empty"]'


def test_a_count_of_one_takes_the_singular():
    finding, several = (plural("{n:,} unit is lost", "{n:,} units are lost", n=n) for n in (1, 2_000))
    assert (finding, several) == ("1 unit is lost", "2,000 units are lost")
    assert finding.id == several.id == "{n:,} unit is lost"


def test_text_without_values_may_have_braces():
    assert sentence("a broker writes at least {}") == "a broker writes at least {}"


def test_a_sentence_survives_another_process_and_an_error():
    text = plural("{n} unit: {why}", "{n} units: {why}", n=2, why=sentence("{file} is gone", file="x"))
    for same in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text), str(ValueError(text)), str(text)):
        assert isinstance(same, Sentence)
        assert (same, same.id, same.plural_id, same.params["why"].id) == (
            text,
            text.id,
            text.plural_id,
            "{file} is gone",
        )
    reported = str(NotAStore(sentence("an empty directory"), file="/store"))
    assert isinstance(reported, Sentence)
    assert reported.params["what"].id == "an empty directory"


def test_values_are_text_and_numbers_only():
    """A path or an error as a value could not be sent to another process, or only slowly."""
    assert sentence("{why}", why=ValueError("no")).params == {"why": "no"}


def test_both_sides_of_a_sum_are_kept():
    text = "; " + sentence("{n} more", n=3)
    assert isinstance(text, Sentence)
    text += " · the end"
    assert (text, text.params["second"]) == ("; 3 more · the end", " · the end")


def test_joined_sentences_are_values_of_one():
    assert join("; ", ["a", "b"]) == "a; b"
    joined = join("; ", [sentence("{n} more", n=3), "b"])
    assert isinstance(joined, Sentence)
    assert (joined, joined.params["part0"].id) == ("3 more; b", "{n} more")


def test_a_capital_changes_the_english_only():
    text = capital(sentence("the log is empty"))
    assert isinstance(text, Sentence)
    assert (text, text.id) == ("The log is empty", "the log is empty")
    assert small(text) == "the log is empty"
    assert with_text("plain", str.upper) == "PLAIN"


def test_the_next_start_is_named_in_the_english_and_for_the_window():
    text = name_next_start(sentence("the next start indexes them again"), "5.3")
    assert isinstance(text, Sentence)
    assert (text, text.release) == ("the next start of RocketMQ 5.3.3 indexes them again", "RocketMQ 5.3.3")
    assert type(name_next_start("nothing of it", "5.3")) is str


def test_a_plain_text_has_no_template():
    assert type(plain(sentence("{n} more", n=3))) is str


def test_a_sentence_travels_through_json():
    """Findings of a pipeline job stayed English in the Chinese window, because their records had only finished text."""
    lost = plural("{n:,} unit: {why}", "{n:,} units: {why}", n=2, why=sentence("{file} is gone", file="x"))
    record = {"message": name_next_start(lost + "; see the next start", "5.3"), "places": [lost, "x"], "none": None}
    same = json.loads(json.dumps(to_json(record)), object_hook=object_hook)
    assert same == record
    assert (same["message"].id, same["message"].release) == ("{first}{second}", "RocketMQ 5.3.3")
    assert same["places"][0].params["why"].id == "{file} is gone"
    assert (same["places"][0].plural_id, type(same["places"][1])) == ("{n:,} units: {why}", str)


def test_the_beginning_can_be_taken_off_again():
    beginning, step = sentence("Take a snapshot; "), sentence("see what the next start loses.")
    remaining_without_beginning = without_beginning(name_next_start(beginning + step, "4.9"), beginning)
    assert remaining_without_beginning == "see what the next start of RocketMQ 4.9.8 loses."
    assert (remaining_without_beginning.id, remaining_without_beginning.release) == (step.id, "RocketMQ 4.9.8")
    assert without_beginning(step, beginning) is step
    assert without_beginning("Take a snapshot; plain", beginning) == "plain"


def test_the_and_of_a_list_can_be_translated():
    assert (with_and([]), with_and(["4.9"])) == ("", "4.9")
    releases = with_and(["4.9", "5.3", "5.5"])
    assert (releases, releases.id) == ("4.9 and 5.3 and 5.5", "{first} and {second}")
