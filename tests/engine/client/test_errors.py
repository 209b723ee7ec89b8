"""Errors name the answer's code and the server that sent it."""

from __future__ import annotations

from engine.client.errors import BrokerRefused, NotSent


def test_a_refusal_has_code_message_and_server() -> None:
    assert str(BrokerRefused(13, None, "127.0.0.1:10911")) == "127.0.0.1:10911: MESSAGE_ILLEGAL (code 13)"
    assert str(BrokerRefused(4711, None)) == "4711 (code 4711)"
    assert BrokerRefused(2, "busy").remark == "busy"
    assert NotSent("no", ["broker-a"]).brokers == ["broker-a"]
