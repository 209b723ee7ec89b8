"""Errors of a client: the broker refuses, nobody answers, or the caller asked for something impossible.

The window shows the errors of its own clients. Their texts are sentences, so it can show them in its language. Errors
that only a caller of the library can cause, for example an option out of its range, are plain English.
"""

from __future__ import annotations

from engine.remoting.answers import UnexpectedAnswer
from engine.remoting.codes import ResponseCode
from engine.sentences import sentence


class ClientError(Exception):
    """Base class of a client's own errors (Java: ``MQClientException``)."""


class BrokerRefused(ClientError):
    """A server answered with a code that is an error (Java: ``MQBrokerException``)."""

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        name = ResponseCode(code).name if code in ResponseCode.__members__.values() else str(code)
        server = f"{address}: " if address else ""
        super().__init__(sentence("{server}{reason} (code {code})", server=server, reason=remark or name, code=code))
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
    """The request got no reply in time, or its sender was stopped before."""


class WrongMessage(ClientError, ValueError):
    """A message that no broker would take; ``what`` is expected and found (Java: ``Validators``)."""


class NotRunning(ClientError):
    """The client was not started, or is stopped."""
