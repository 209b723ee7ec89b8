"""Errors name the answer's code and the server that sent it."""

from __future__ import annotations

import pickle

from engine.client.errors import BrokerRefused, NotSent
from engine.sentences import Sentence


def test_a_refusal_has_code_message_and_server() -> None:
    assert str(BrokerRefused(13, None, "127.0.0.1:10911")) == "127.0.0.1:10911: MESSAGE_ILLEGAL (code 13)"
    assert str(BrokerRefused(4711, None)) == "4711 (code 4711)"
    assert BrokerRefused(2, "busy").remark == "busy"
    assert NotSent("no", ["broker-a"]).brokers == ["broker-a"]


def test_the_text_can_be_translated_also_behind_a_pipe() -> None:
    """The window shows the errors of its own clients, which run in another process. They stayed English in Chinese."""
    text = pickle.loads(pickle.dumps(str(BrokerRefused(17, None, "127.0.0.1:10911"))))
    assert isinstance(text, Sentence)
    assert text.params == {"server": "127.0.0.1:10911: ", "reason": "TOPIC_NOT_EXIST", "code": 17}
