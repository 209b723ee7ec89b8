"""The kind and history of a message in plain text: every kind of message that real brokers leave."""

from collections import Counter
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import properties as props
from engine.codec.message import Unit
from engine.codec.unit_scan import walk
from engine.codec.words import ROLES, TEXTS, UnitNote, op_offsets, role, words
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, OFFSET_MOVED_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC

STORED = 1795248757000
HOST = bytes.fromhex("7f00000100002a9f")


def unit(topic="OrderEvents", text="", body=b"", **changes):
    """Make a unit with properties in the notation ``NAME=value;`` for 0x01 and 0x02."""
    raw = text.replace("=", "\x01").replace(";", "\x02").encode()
    values = {
        "offset": 1000,
        "size": 200,
        "version": 1,
        "body_crc": 0,
        "queue_id": 0,
        "flag": 0,
        "queue_offset": 0,
        "physical_offset": 1000,
        "sys_flag": 0,
        "born_timestamp": STORED - 5,
        "born_host_raw": HOST,
        "store_timestamp": STORED,
        "store_host_raw": HOST,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "body": body,
        "topic": topic,
        "properties_raw": raw,
        "properties": props.decode(raw),
        "crc": "ok",
    }
    return Unit(**{**values, **changes})


REAL = "REAL_TOPIC=OrderEvents;REAL_QID=2;"
TO = {"topic": "OrderEvents", "queue": 2}
RETRY = "ORIGIN_MESSAGE_ID=7F00;RETRY_TOPIC=OrderEvents;DELAY=1;WAIT=false;REAL_TOPIC=%RETRY%billing;REAL_QID=0;"
ORIGIN = UnitNote("origin", {"id": "7F00"})
CK = b'{"bm":0,"bn":"broker-a","c":"billing","d":[0],"it":10000,"n":1,"pt":5,"q":0,"reviveTime":9,"so":3,"t":"Orders"}'
POP = {"group": "billing", "topic": "Orders", "queue": 0, "popped": 5}

CASES = [
    pytest.param(unit(text="KEYS=K1;TAGS=Aa;WAIT=true;"), "plain", [], id="plain"),
    pytest.param(
        unit(text="KEYS=K1;CLUSTER=c", sys_flag=0x301),
        "plain",
        [UnitNote("compressed", {"by": "zlib"})],
        id="zlib",
    ),
    pytest.param(unit(sys_flag=0x101), "plain", [UnitNote("compressed", {"by": "lz4"})], id="lz4"),
    pytest.param(unit(sys_flag=0x201), "plain", [UnitNote("compressed", {"by": "zstd"})], id="zstd"),
    pytest.param(unit(sys_flag=0x001), "plain", [UnitNote("compressed", {"by": "zlib"})], id="zlib of old clients"),
    pytest.param(unit(sys_flag=0x501), "plain", [UnitNote("compressedUnclear", {"type": 5})], id="compressed somehow"),
    pytest.param(
        unit(text="INNER_BASE=4;INNER_NUM=4;UNIQ_KEY=x;", sys_flag=0xC0),
        "innerBatch",
        [UnitNote("innerBatch", {"count": 4, "first": 4, "last": 7})],
        id="inner batch",
    ),
    pytest.param(
        unit(text="INNER_NUM=4;", sys_flag=0x80), "plain", [UnitNote("innerBatchUnclear")], id="batch without base"
    ),
    pytest.param(unit(sys_flag=0x40), "plain", [UnitNote("needUnwrap")], id="to be unwrapped"),
    pytest.param(unit(text="_SYS_MSG_PRIORITY_=3;"), "plain", [UnitNote("priority", {"priority": 3})], id="priority"),
    pytest.param(unit(text="_SYS_MSG_PRIORITY_=3;__SHARDINGKEY=a;"), "plain", [], id="priority that does not count"),
    pytest.param(
        unit(text="__LITE_TOPIC=a;"),
        "plain",
        [UnitNote("lite", {"lite": "a", "topic": "OrderEvents"})],
        id="lite topic",
    ),
    pytest.param(
        unit(text="INNER_MULTI_DISPATCH=%LMQ%user-1,%LMQ%room-2;INNER_MULTI_QUEUE_OFFSET=0,7;"),
        "light",
        [UnitNote("light", {"queues": ["%LMQ%user-1/0", "%LMQ%room-2/7"]})],
        id="light queues",
    ),
    pytest.param(
        unit(text="INNER_MULTI_DISPATCH=%LMQ%a,%LMQ%b,plain;INNER_MULTI_QUEUE_OFFSET=2,1,;"),
        "plain",
        [UnitNote("lightBroken", {"names": 3, "offsets": 2})],
        id="a plain queue as the last name costs all of them",
    ),
    pytest.param(
        unit(SCHEDULE_TOPIC, f"DELAY=3;{REAL}"),
        "delayed",
        [UnitNote("delayed", {"level": 3, "due": STORED + 10_000, **TO})],
        id="delay level, waiting",
    ),
    pytest.param(
        unit(SCHEDULE_TOPIC, f"DELAY=25;{REAL}"),
        "delayed",
        [UnitNote("delayed", {"level": 18, "due": STORED + 7_200_000, **TO})],
        id="level above the last",
    ),
    pytest.param(
        unit(SCHEDULE_TOPIC),
        "delayed",
        [UnitNote("delayed", {"level": 0, "due": None, "topic": None, "queue": None})],
        id="in the schedule topic without anything",
    ),
    pytest.param(
        unit(text=f"DELAY=1;{REAL}"),
        "delayDelivered",
        [UnitNote("delayDelivered", {"level": 1})],
        id="delay, delivered",
    ),
    pytest.param(
        unit(TIMER_TOPIC, f"TIMER_DELAY_SEC=2;TIMER_OUT_MS=9000;{REAL}"),
        "timerWaiting",
        [UnitNote("timerWaiting", {"due": 9000, **TO})],
        id="timer, waiting",
    ),
    pytest.param(
        unit(TIMER_TOPIC, f"TIMER_OUT_MS=9000;TIMER_ROLL_TIMES=1;TIMER_ENQUEUE_MS=1;TIMER_DEQUEUE_MS=2;{REAL}"),
        "timerRolled",
        [UnitNote("timerRolled", {"times": 1, "due": 9000, **TO})],
        id="timer, rolled",
    ),
    pytest.param(
        unit(text=f"TIMER_OUT_MS=9000;TIMER_ENQUEUE_MS=8000;TIMER_DEQUEUE_MS=9032;{REAL}"),
        "timerDelivered",
        [UnitNote("timerDelivered", {"due": 9000, "dequeued": 9032})],
        id="timer, delivered",
    ),
    pytest.param(
        unit(text=f"TIMER_OUT_MS=9000;TIMER_ENQUEUE_MS=9223372036854775807;{REAL}"),
        "timerAtOnce",
        [UnitNote("timerAtOnce", {"due": 9000})],
        id="timer, due before it reached the wheel",
    ),
    pytest.param(unit(text="TIMER_DELIVER_MS=5;"), "timerPast", [UnitNote("timerPast")], id="timer, already due"),
    pytest.param(
        unit(TIMER_TOPIC, "TIMER_DEL_UNIQKEY=OrderEvents+7F01;TIMER_OUT_MS=9000;TRACE_CONTEXT=;"),
        "recall",
        [
            UnitNote("recall", {"key": "7F01", "topic": "OrderEvents", "due": 9000}),
            UnitNote("emptyValues", {"names": ["TRACE_CONTEXT"]}),
        ],
        id="recall",
    ),
    pytest.param(
        unit(SCHEDULE_TOPIC, RETRY, reconsume_times=1),
        "retryWaiting",
        [
            UnitNote("delayed", {"level": 1, "due": STORED + 1000, "topic": "%RETRY%billing", "queue": 0}),
            UnitNote(
                "retryWaiting",
                {"group": "billing", "level": 1, "due": STORED + 1000, "times": 1, "topic": "OrderEvents"},
            ),
            ORIGIN,
        ],
        id="retry, waiting",
    ),
    pytest.param(
        unit("%RETRY%billing", RETRY, reconsume_times=2),
        "retryDelivered",
        [
            UnitNote("delayDelivered", {"level": 1}),
            UnitNote("retryDelivered", {"group": "billing", "times": 2, "topic": "OrderEvents"}),
            ORIGIN,
        ],
        id="retry, delivered",
    ),
    pytest.param(unit("%RETRY%g"), "retryTopic", [UnitNote("retryTopic", {"group": "g"})], id="sent to a retry topic"),
    pytest.param(
        unit("%DLQ%billing", RETRY.replace("DELAY=1", "DELAY=0"), reconsume_times=3),
        "deadLetter",
        [UnitNote("deadLetter", {"group": "billing", "times": 3, "topic": "OrderEvents"}), ORIGIN],
        id="dead letter",
    ),
    pytest.param(
        unit(HALF_TOPIC, f"TRAN_MSG=true;PGROUP=tx;__transactionId__=x;{REAL}"),
        "half",
        [UnitNote("half", {"group": "tx", **TO})],
        id="half",
    ),
    pytest.param(
        unit(HALF_TOPIC, f"TRAN_MSG=true;PGROUP=tx;DELAY=2;{REAL}"),
        "half",
        [UnitNote("half", {"group": "tx", **TO}), UnitNote("delayLater", {"level": 2})],
        id="half with a delay",
    ),
    pytest.param(
        unit(HALF_TOPIC, f"TRAN_MSG=true;TRANSACTION_CHECK_TIMES=1;{REAL}"),
        "halfAgain",
        [UnitNote("halfAgain", {"checks": 1, **TO})],
        id="half, checked again",
    ),
    pytest.param(
        unit(HALF_TOPIC, f"PGROUP=tx;TRAN_PREPARED_QUEUE_OFFSET=17;{REAL}"),
        "half",
        [UnitNote("half", {"group": "tx", **TO}), UnitNote("halfPutBack", {"original": 17})],
        id="half, put back for immunity",
    ),
    pytest.param(
        unit(text=f"TRAN_MSG=true;TRANSACTION_CHECK_TIMES=2;{REAL}", sys_flag=0x309, prepared_transaction_offset=0),
        "committed",
        [
            UnitNote("committed", {"half": 0}),
            UnitNote("checked", {"checks": 2}),
            UnitNote("compressed", {"by": "zlib"}),
        ],
        id="committed, half at offset 0",
    ),
    pytest.param(unit(sys_flag=0x4), "preparedFlag", [UnitNote("preparedFlag")], id="PREPARED by flag"),
    pytest.param(unit(sys_flag=0xC), "rollbackFlag", [UnitNote("rollbackFlag")], id="ROLLBACK by flag"),
    pytest.param(
        unit(OP_TOPIC, "WAIT=true;TAGS=d;", b"0,3,2,"),
        "op",
        [UnitNote("op", {"count": 3, "offsets": [0, 3, 2]})],
        id="op",
    ),
    pytest.param(
        unit(OP_TOPIC, "TAGS=d;", b"17"), "op", [UnitNote("op", {"count": 1, "offsets": [17]})], id="op of 4.9"
    ),
    pytest.param(unit(OP_TOPIC, "TAGS=d;", b"x,1"), "opUnclear", [UnitNote("opUnclear")], id="op with another body"),
    pytest.param(
        unit(CHECK_MAX_TOPIC, f"TRANSACTION_CHECK_TIMES=3;{REAL}"),
        "givenUp",
        [UnitNote("givenUp", {"checks": 3, **TO})],
        id="given up",
    ),
    pytest.param(
        unit("rmq_sys_REVIVE_LOG_c", f"TAGS=ck;{REAL}", CK),
        "popCheckpoint",
        [UnitNote("popCheckpoint", {**POP, "count": 1, "start": 3, "revived": 9})],
        id="pop checkpoint",
    ),
    pytest.param(
        unit(
            TIMER_TOPIC,
            "TAGS=ack;TIMER_OUT_MS=1;REAL_TOPIC=rmq_sys_REVIVE_LOG_c;REAL_QID=1;",
            b'{"ao":4,"bn":"a","c":"billing","pt":5,"q":0,"so":0,"t":"Orders"}',
        ),
        "popAck",
        [
            UnitNote("timerWaiting", {"due": 1, "topic": "rmq_sys_REVIVE_LOG_c", "queue": 1}),
            UnitNote("popAck", {**POP, "offset": 4}),
        ],
        id="pop ack in the timer topic",
    ),
    pytest.param(
        unit("rmq_sys_REVIVE_LOG_c", "TAGS=bAck;", b'{"aol":[4,6],"c":"billing","pt":5,"q":0,"t":"Orders"}'),
        "popAcks",
        [UnitNote("popAcks", {**POP, "offsets": [4, 6]})],
        id="pop batch ack",
    ),
    pytest.param(
        unit("rmq_sys_REVIVE_LOG_c", "TAGS=ck;", b"{"),
        "popUnclear",
        [UnitNote("popUnclear", {"tag": "ck"})],
        id="pop, torn",
    ),
    pytest.param(
        unit("%RETRY%billing_OrderEvents", "1ST_POP_TIME=5;"),
        "popRetry",
        [UnitNote("popRetry", {"name": "billing_OrderEvents", "popped": 5})],
        id="pop retry",
    ),
    pytest.param(
        unit(
            OFFSET_MOVED_TOPIC,
            "KEYS=g;DELAY=0;TAGS=g;",
            b'{"consumerGroup":"g","messageQueue":{"brokerName":"a","queueId":0,"topic":"T"},"offsetNew":3,"offsetRequest":9}',
        ),
        "offsetMoved",
        [UnitNote("offsetMoved", {"group": "g", "topic": "T", "queue": 0, "asked": 9, "given": 3})],
        id="offset moved",
    ),
    pytest.param(unit(sys_flag=0x30), "plain", [UnitNote("bornIpv6"), UnitNote("storeIpv6")], id="IPv6"),
    pytest.param(unit(text="__CRC32#=6196592561;"), "plain", [UnitNote("propertyCrc")], id="property CRC"),
    pytest.param(unit("T", version=2), "plain", [UnitNote("version2")], id="version 2"),
    pytest.param(unit(physical_offset=7), "plain", [UnitNote("stale", {"field": 7})], id="stale"),
    pytest.param(unit(text="abc"), "plain", [UnitNote("notText", {"length": 3})], id="properties without a pair"),
]


@pytest.mark.parametrize(("message", "kind", "expected"), CASES)
def test_kind_and_history(message, kind, expected):
    assert words(message) == expected
    assert role(message) == kind


@pytest.mark.parametrize(("message", "kind", "expected"), CASES)
def test_every_fact_is_in_its_sentence(message, kind, expected):
    for word in expected:
        assert {name for _, name, _, _ in Formatter().parse(TEXTS[word.kind]) if name} <= set(word.facts)
        assert word.text
        assert "{" not in word.text


def test_every_kind_has_a_case():
    met = {word.kind for case in CASES for word in case.values[2]} | {"propertyCrcBad"}
    assert met == set(TEXTS)
    assert set(ROLES) <= set(TEXTS)


def test_sentences_show_times_as_utc_and_cut_long_lists():
    assert words(unit(SCHEDULE_TOPIC, f"DELAY=3;{REAL}"))[0].text == (
        "waiting at delay level 3: due 2026-11-21T08:12:47.000Z for OrderEvents queue 2"
    )
    many = ",".join(map(str, range(60))).encode()
    assert words(unit(OP_TOPIC, "", many))[0].text.endswith("48, 49 and 10 more")
    assert words(unit(HALF_TOPIC))[0].text == "half message: goes to ? queue ? when its producer ? commits"


def test_levels_of_the_broker_count():
    assert words(unit(SCHEDULE_TOPIC, f"DELAY=9;{REAL}"), levels=(7, 8))[0].facts["due"] == STORED + 8
    assert words(unit(SCHEDULE_TOPIC, f"DELAY=9;{REAL}"), levels=())[0].facts["due"] is None


def test_the_result_of_a_property_crc_is_reported():
    assert words(unit(), property_crc=True) == [UnitNote("propertyCrc")]
    assert words(unit(text="__CRC32#=0000000000;"), property_crc=False) == [UnitNote("propertyCrcBad")]


@pytest.mark.parametrize(
    ("body", "offsets"),
    [
        (b"0,3,2,1,", [0, 3, 2, 1]),
        (b"17", [17]),
        (b"", None),
        (b",", None),
        (b"1,,2", None),
        (b"-1", None),
        (b"1,x", None),
        (b"\xff\xfe", None),
        (b"9" * 30, None),
        ("٣".encode(), None),
    ],
)
def test_op_bodies(body, offsets):
    assert op_offsets(body) == offsets


_CONSTANTS = [value for name, value in vars(props).items() if name.isupper() and isinstance(value, str)]
_NAMES = st.sampled_from([*_CONSTANTS, "TRAN_PREPARED_QUEUE_OFFSET"])
_VALUES = st.sampled_from(["1", "-1", "0", "x", "9223372036854775807", "ck", "%RETRY%g", "a,b", "+"]) | st.text(
    max_size=6
)
_OWN_TOPICS = (HALF_TOPIC, OP_TOPIC, CHECK_MAX_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC, OFFSET_MOVED_TOPIC)
_TOPICS = st.sampled_from([*_OWN_TOPICS, "rmq_sys_REVIVE_LOG_c", "%RETRY%g", "%DLQ%g", "T", ""])


@given(
    _TOPICS,
    st.dictionaries(_NAMES, _VALUES, max_size=6),
    st.binary(max_size=40) | st.sampled_from([CK, b'{"t":[],"pt":"x","messageQueue":1}', b"[]"]),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.binary(max_size=20),
)
def test_any_unit_can_be_described(topic, properties, body, sys_flag, raw):
    new_unit = unit(topic, body=body, properties=properties, sys_flag=sys_flag, properties_raw=raw)
    for word in words(new_unit):
        assert word.text
    assert role(new_unit) in {*ROLES, "plain"}


def _units(store):
    for path in sorted((store / "commitlog").iterdir()):
        for row in walk(path.read_bytes(), int(path.name), crc=False):
            if isinstance(row, Unit):
                yield row


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "ops", "answers"), [("broker-transactions", 3, 153), ("broker-transactions-4.9.7", 153, 153)]
)
def test_transactions_of_real_brokers(golden, golden_account, name, ops, answers):
    units = list(_units(golden(name)))
    roles = Counter(map(role, units))
    actual_words = [word for unit in units for word in words(unit)]
    assert roles["op"] == ops
    assert sum(word.facts["count"] for word in actual_words if word.kind == "op") == answers
    by_offset = {unit.offset: unit for unit in units}
    halves = [word.facts["half"] for word in actual_words if word.kind == "committed"]
    assert {by_offset[offset].topic for offset in halves} == {HALF_TOPIC}
    total = sum(1 for line in golden_account(name, "truth.jsonl.xz") if line["kind"] == "half")
    assert roles["half"] == total


@pytest.mark.golden
def test_retries_and_timers_of_a_real_broker(golden, golden_account):
    units = list(_units(golden("broker-retries")))
    roles = Counter(map(role, units))
    assert set(roles) == {
        "plain",
        "retryWaiting",
        "retryDelivered",
        "deadLetter",
        "delayed",
        "delayDelivered",
        "timerWaiting",
        "timerPast",
        "timerRolled",
        "timerDelivered",
        "recall",
    }
    counts = Counter((line["kind"], line.get("topic")) for line in golden_account("broker-retries", "truth.jsonl.xz"))
    recalls = {word.facts["key"] for observed in units for word in words(observed) if word.kind == "recall"}
    assert len(recalls) == counts["recall", "OrderEvents"] + counts["recall", "PaymentEvents"]
    assert roles["retryWaiting"] == roles["retryDelivered"]
    for actual_unit in units:
        for word in words(actual_unit):
            if word.kind == "timerDelivered":
                assert 0 <= word.facts["dequeued"] - word.facts["due"] < 60_000


@pytest.mark.golden
def test_pop_and_light_queues_of_real_brokers(golden):
    pop = Counter(map(role, _units(golden("broker-pop"))))
    assert {"popCheckpoint", "popAck", "popRetry", "plain"} == set(pop)
    light = Counter(map(role, _units(golden("broker-lmq"))))
    assert set(light) == {"light", "innerBatch", "plain"}
    assert Counter(map(role, _units(golden("broker-orders")))).keys() == {"plain"}


@pytest.mark.golden
def test_units_with_a_plain_last_name_have_no_light_entry(golden):
    """The last name of these units of lmq-5.3.3 is a plain queue: Java's split drops its empty offset, and no entry
    is made.
    """
    store = golden("lmq-5.3.3")
    left_out = {
        actual_unit.offset
        for actual_unit in _units(store)
        if any(word.kind == "lightBroken" for word in words(actual_unit))
    }
    assert len(left_out) == 40
    light = b"".join(path.read_bytes() for path in (store / "consumequeue").glob("%LMQ%*/*/*"))
    entries = {int.from_bytes(light[position : position + 8], "big") for position in range(0, len(light), 20)}
    assert not entries & left_out
