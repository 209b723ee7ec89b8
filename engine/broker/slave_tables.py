"""Tables that a slave of RocketMQ 5.x copies from its master beside topics, groups and offsets: timers, and modes of
consumption.

Java: ``AdminBrokerProcessor.getTimerCheckPoint``, ``getTimerMetrics``, ``getAllMessageRequestMode``; they are asked by
``SlaveSynchronize``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.assignments import MODES
from engine.broker.json_bodies import write
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


def timer_check_point(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_TIMER_CHECK_POINT: progress of timers, as the file ``timercheck`` has it."""
    if broker.timers is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    return answer_to(request, body=broker.timers.check_point().numbers())


def timer_metrics(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_TIMER_METRICS: timer messages that wait by topic, as the file ``timermetrics`` has them."""
    if broker.timers is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The timerMessageStore is null")
    return answer_to(request, body=broker.timers.metrics_text().encode())


def request_modes(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_MESSAGE_REQUEST_MODE: which groups pop, by topic."""
    return answer_to(request, body=write({MODES: broker.request_modes.value.get(MODES) or {}}))


def take_request_modes(broker: Broker, body: Mapping[str, Any]) -> None:
    """Store the modes of the master's answer to 402. Raises ``OSError`` where they cannot be written."""
    modes, table = body.get(MODES), broker.request_modes
    if isinstance(modes, Mapping) and modes != (table.value.get(MODES) or {}):
        table.value[MODES] = dict(modes)
        table.write(*table.taken())


ANSWERS: dict[int, Processor] = {
    RequestCode.GET_TIMER_CHECK_POINT: timer_check_point,
    RequestCode.GET_TIMER_METRICS: timer_metrics,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: request_modes,
}
