"""Settings out of a properties file: Java's names, their types, and what cannot be taken."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.broker.config import BrokerConfig
from engine.errors import UsageError
from engine.remoting.settings import attributes_by_key, key, key_value_pairs, overlay


@dataclass(frozen=True)
class SampleSettings:
    """One setting of each type, and something that is none."""

    port: int = key("listenPort", 7)
    path: str = key("storePath", "")
    fast: bool = key("isFast", default=False)
    other: int = 5


def test_values_come_by_their_java_names_and_types():
    results, unknown = overlay(SampleSettings(), "listenPort = 9\nisFast=true\nstorePath=/a b\nnobodys=1\n")
    assert (results, unknown) == (SampleSettings(9, "/a b", True), ["nobodys"])
    assert list(attributes_by_key(results)) == ["listenPort", "storePath", "isFast"]
    assert key_value_pairs(results) == [("listenPort", "9"), ("storePath", "/a b"), ("isFast", "true")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nlistenPort=high", "line 2, listenPort: expected a number, found 'high'"),
        ("isFast=yes", "line 1, isFast: expected true or false, found 'yes'"),
        ("listenPort=-1", "line 1, listenPort: expected a number, found '-1'"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(text, said):
    with pytest.raises(UsageError, match=said):
        overlay(SampleSettings(), text, "some.conf")


def test_a_number_below_zero_is_taken_where_the_usual_one_is():
    """``defaultPopShareQueueNum=-1`` stands in files of real brokers."""
    results, unknown = overlay(BrokerConfig(), "defaultPopShareQueueNum=-1\n")
    assert (results.pop_share_queues, unknown) == (-1, [])
