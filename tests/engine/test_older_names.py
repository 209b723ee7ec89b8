"""Scripts written for an older version still work, with a warning for each older name."""

from __future__ import annotations

import inspect

import pytest

from engine.client.blocking import BlockingLitePullConsumer, BlockingProducer
from engine.client.producer import Producer, ProducerConfig
from engine.client.pulling import LitePullConsumer
from engine.message_store import MessageStore
from engine.older_names import renamed_keyword


@renamed_keyword("patience", "timeout_s")
def waited(message: str, timeout_s: float = 3.0) -> tuple[str, float]:
    return message, timeout_s


def test_the_older_name_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="patience= is called timeout_s= now"):
        assert waited("one", patience=0.5) == ("one", 0.5)  # type: ignore[call-arg]
    assert waited("one", timeout_s=2.0) == ("one", 2.0)
    assert waited("one") == ("one", 3.0)


def test_both_names_at_once_are_an_error_of_the_caller():
    with pytest.raises(TypeError, match="patience"):
        waited("one", patience=0.5, timeout_s=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("client", [Producer, BlockingProducer, LitePullConsumer, BlockingLitePullConsumer])
def test_each_public_method_with_a_time_limit_takes_the_older_name(client: type):
    limited = {
        name: method
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_") and "timeout_s" in inspect.signature(method).parameters
    }
    assert limited
    assert [name for name, method in limited.items() if not hasattr(method, "__wrapped__")] == []


def test_the_release_has_its_older_name(tmp_path):
    """Scripts said ``like="4.9"`` for the release whose rules apply."""
    with pytest.warns(DeprecationWarning, match="like= is called release= now"):
        config = ProducerConfig(like="4.9")  # type: ignore[call-arg]
    assert config == ProducerConfig(release="4.9")
    with pytest.warns(DeprecationWarning, match="like is called release now"):
        assert config.like == "4.9"
    with (
        pytest.warns(DeprecationWarning, match="like= is called release= now"),
        MessageStore(tmp_path, like="4.9", services=False) as store,
    ):
        assert store.release == "4.9"
    with pytest.warns(DeprecationWarning, match="like is called release now"):
        assert store.recovery_plan.like == "4.9"
