"""The filter of requests: the log's language over fields of requests."""

from __future__ import annotations

import pytest
import recorded_requests

from engine.errors import BadFilter
from viewer.requests.fields import FIELDS, PILLS, request_filter, term_of
from viewer.requests.request_log import RequestLog


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RequestLog:
    request_log = RequestLog()
    request_log.take(recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store"))
    return request_log


def matching_names(log: RequestLog, text: str) -> list[str]:
    test = request_filter(text)
    return [row.name for row in log.rows if test.matches(row)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", 12),
        ('request = "SEND_MESSAGE" and offset >= 2', 2),
        ('topic = "Orders" and queueId = 2', 1),
        ("held", 1),
        ("oneWay", 2),
        ('direction = "out"', 1),
        ('answer = "TOPIC_NOT_EXIST"', 1),
        ('group in ("readers", "payers")', 6),
        ('properties.producerGroup = "senders"', 5),
        ("ms >= 0 and bytes > 1000", 1),
        ('client = "C1" and not oneWay', 10),
        (PILLS["not0"], 1),
        (PILLS["held"], 1),
        (PILLS["sends"], 5),
        (PILLS["beats"], 11),
        ("waits or broken", 0),
    ],
)
def test_a_condition_finds_its_requests(log: RequestLog, text: str, names: int) -> None:
    assert len(matching_names(log, text)) == names


def test_every_field_works_on_every_row(log: RequestLog) -> None:
    for row in log.rows:
        for spec in FIELDS.values():
            value = spec.record(row)
            if spec.kind != "condition" and spec.name not in {"ms", "time"}:
                text = term_of(spec.name, value)
                assert request_filter(text).matches(row), text  # type: ignore[arg-type]


def test_an_error_has_its_position() -> None:
    with pytest.raises(BadFilter, match="no field 'topci'; did you mean topic"):
        request_filter('topci = "x"')
    with pytest.raises(BadFilter, match="server is one of broker, namesrv"):
        request_filter('server = "proxy"')
    with pytest.raises(BadFilter):
        request_filter("physicalOffset = 3")
