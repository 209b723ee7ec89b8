"""Errors of a client: the broker refuses, nobody answers, or the caller asked for something impossible."""

from __future__ import annotations

from engine.remoting.answers import UnexpectedAnswer
from engine.remoting.codes import ResponseCode


class ClientError(Exception):
    """Base class of a client's own errors (Java: ``MQClientException``)."""


class BrokerRefused(ClientError):
    """A server answered with a code that is an error (Java: ``MQBrokerException``)."""

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        name = ResponseCode(code).name if code in ResponseCode.__members__.values() else str(code)
        super().__init__(f"{address + ': ' if address else ''}{remark or name} (code {code})")
        self.code = code
        self.remark = remark or ""
        self.address = address


class AnswerNotUnderstood(ClientError, UnexpectedAnswer):
    """A server's answer is not as RocketMQ writes it; the text names server, request and error."""


class NoRoute(ClientError):
    """The name servers know no usable queue of a topic."""


class NotSent(ClientError):
    """Every try to send failed; ``__cause__`` is the error of the last one. ``brokers`` are those that were tried."""

    def __init__(self, words: str, brokers: list[str]) -> None:
        super().__init__(words)
        self.brokers = brokers


class NoReply(ClientError):
    """No reply to a request came in time, or its sender was stopped before."""


class WrongMessage(ClientError, ValueError):
    """A message that no broker would take; ``what`` is expected and found (Java: ``Validators``)."""


class NotRunning(ClientError):
    """The client was not started, or is stopped."""
