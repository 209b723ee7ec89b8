"""Answers of other servers: one error for each answer that RocketMQ would not have written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.codec.json_dialect import parse
from engine.errors import StoreError
from engine.remoting.codes import request_name
from engine.sentences import sentence


class UnexpectedAnswer(ValueError):
    """An answer that is not as RocketMQ writes it: cut off, empty, or with values of other types."""


@contextlib.contextmanager
def reading(code: int, address: str = "", error_type: type[UnexpectedAnswer] = UnexpectedAnswer) -> Iterator[None]:
    """Turn any exception of code that reads an answer into one ``error_type`` that names server, request and cause.

    Only reading belongs into the block, not the request itself: refusals and broken connections have their own errors.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, StoreError) as error:
        server = f"{address}: " if address else ""
        raise error_type(
            sentence(
                "{server}the answer to {request} is not as RocketMQ writes it: {cause}",
                server=server,
                request=request_name(code),
                cause=_cause(error),
            )
        ) from error


def _cause(error: Exception) -> str:
    if isinstance(error, KeyError):
        return sentence("{file} is missing", file=error)
    if isinstance(error, UnexpectedAnswer | StoreError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def json_object(body: bytes | memoryview) -> Mapping[Any, Any]:
    """Return the JSON object in a body, in RocketMQ's dialect. Raises :class:`UnexpectedAnswer`."""
    read = parse(bytes(body))
    if not isinstance(read.value, Mapping):
        raise UnexpectedAnswer(sentence("the body is no object") if read.fault is None else read.fault.words)
    return read.value


def member_object(parent: Any, name: str) -> Mapping[Any, Any]:
    """Return the object ``name``. Raises :class:`UnexpectedAnswer` where it is missing or something else."""
    value = parent.get(name) if isinstance(parent, Mapping) else None
    if not isinstance(value, Mapping):
        raise UnexpectedAnswer(sentence("{name} is no object", name=name))
    return value


def member_objects(parent: Mapping[Any, Any], name: str) -> list[Mapping[Any, Any]]:
    """Return the objects of the list ``name``; none where it is missing or null. Raises :class:`UnexpectedAnswer`
    where it is something else.
    """
    value = parent.get(name)
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(row, Mapping) for row in value):
        raise UnexpectedAnswer(sentence("{name} is no list of objects", name=name))
    return list(value)
