"""Settings from a properties file: Java's names, their types, and invalid values."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.broker.config import BrokerConfig
from engine.errors import UsageError
from engine.remoting.settings import attributes_by_key, key, key_value_pairs, overlay


@dataclass(frozen=True)
class SampleSettings:
    """One setting of each type, and one field that is no setting."""

    port: int = key("listenPort", 7)
    path: str = key("storePath", "")
    fast: bool = key("isFast", default=False)
    not_a_setting: int = 5


def test_values_come_by_their_java_names_and_types():
    results, unknown = overlay(SampleSettings(), "listenPort = 9\nisFast=true\nstorePath=/a b\nnobodys=1\n")
    assert (results, unknown) == (SampleSettings(9, "/a b", True), ["nobodys"])
    assert list(attributes_by_key(results)) == ["listenPort", "storePath", "isFast"]
    assert key_value_pairs(results) == [("listenPort", "9"), ("storePath", "/a b"), ("isFast", "true")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nlistenPort=high", "line 2, listenPort: expected a number, found 'high'"),
        ("isFast=yes", "line 1, isFast: expected true or false, found 'yes'"),
        ("listenPort=-1", "line 1, listenPort: expected a number, found '-1'"),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(text, message):
    with pytest.raises(UsageError, match=message):
        overlay(SampleSettings(), text, "some.conf")


def test_a_negative_number_is_accepted_if_the_default_is_negative():
    """``defaultPopShareQueueNum=-1`` is in files of real brokers."""
    results, unknown = overlay(BrokerConfig(), "defaultPopShareQueueNum=-1\n")
    assert (results.pop_share_queues, unknown) == (-1, [])
