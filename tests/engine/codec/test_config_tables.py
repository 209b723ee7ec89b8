"""Typed rows of every table under config/."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import config_tables
from engine.codec.config_tables import (
    TABLES,
    ClientOffset,
    ConsumerFilter,
    ConsumerOffset,
    client_offsets,
    consumer_filters,
    consumer_offsets,
    delay_offsets,
    load_table,
    metrics,
    subscription_groups,
    topics,
    whole_number,
)
from engine.codec.json_dialect import parse

OFFSETS = """{"dataVersion":{"counter":5,"stateVersion":0,"timestamp":1795248631466},
 "groupTopicMap":{"billing":["OrderEvents"]},
 "offsetTable":{"OrderEvents@warehouse":{0:389,"1":369},"ShipmentEvents@dashboard@broadcast":{0:70},
 "%RETRY%warehouse@warehouse":{0:0},"lonely":{0:1},"a@b@c@d":{0:1},"T@g":{"x":1,0:"2",1:true}},
 "lmqOffsetTable":{"%LMQ%t1@%LMQ%g1":5,"bad":1,"%LMQ%t2@%LMQ%g2":{}}}"""


def test_offsets_of_groups_broadcasters_and_light_groups():
    actual_consumer_offsets = consumer_offsets(parse(OFFSETS).value)
    assert actual_consumer_offsets.rows == (
        ConsumerOffset("OrderEvents@warehouse", "OrderEvents", "warehouse", "cluster", {0: 389, 1: 369}),
        ConsumerOffset("ShipmentEvents@dashboard@broadcast", "ShipmentEvents", "dashboard", "broadcast", {0: 70}),
        ConsumerOffset("%RETRY%warehouse@warehouse", "%RETRY%warehouse", "warehouse", "cluster", {0: 0}),
        ConsumerOffset("T@g", "T", "g", "cluster", {0: 2}),
        ConsumerOffset("%LMQ%t1@%LMQ%g1", "%LMQ%t1", "%LMQ%g1", "lmq", {0: 5}),
    )
    assert len(actual_consumer_offsets.problems) == 6
    assert (
        actual_consumer_offsets.problems[0] == "offsetTable: expected topic@group, found 'lonely'; a broker ignores it"
    )


def test_delay_offsets_are_by_level():
    text = '{"dataVersion":{"counter":8},"offsetTable":{1:63,2:24,18:0}}'
    assert delay_offsets(parse(text).value) == ({1: 63, 2: 24, 18: 0}, ())
    assert delay_offsets({"offsetTable": []}) == ({}, ("offsetTable: expected an object, found a list",))


def test_topics_get_defaults_and_errors_are_named():
    text = """{"topicConfigTable":{"A":{"attributes":{"queue.type":"BatchCQ"},"order":true,"perm":7,"readQueueNums":2,
    "topicFilterType":"MULTI_TAG","topicName":"A","topicSysFlag":1,"writeQueueNums":3},"B":{"topicName":"C","perm":"6"},"D":1}}"""
    actual_topics = topics(parse(text).value)
    a, b = actual_topics.rows
    assert (a.read_queue_nums, a.write_queue_nums, a.perm, a.order, a.batch) == (2, 3, 7, True, True)
    assert (b.perm, b.read_queue_nums, b.attributes, b.batch) == (6, 16, {}, False)
    assert actual_topics.problems == (
        "B: topicName says 'C'",
        "topicConfigTable.D: expected an object, found 1",
    )


def test_groups():
    text = '{"subscriptionGroupTable":{"billing":{"retryMaxTimes":2,"consumeEnable":false,"groupName":"billing"}}}'
    (row,) = subscription_groups(parse(text).value).rows
    assert (row.name, row.retry_max_times, row.retry_queue_nums, row.consume_enable) == ("billing", 2, 1, False)


def test_filters():
    text = """{"filterDataByTopic":{"OrderEvents":{"groupFilterData":{"billing":{
      "bloomFilterData":{"bitNum":112,"bitPos":[15,11,6]},"bornTime":1700000000000,"clientVersion":1700000000001,
      "consumerGroup":"billing","dead":false,"deadTime":0,"expression":"amount > 100","expressionType":"SQL92",
      "topic":"OrderEvents"}},"topic":"OrderEvents"}}}"""
    assert consumer_filters(parse(text).value).rows == (
        ConsumerFilter(
            "OrderEvents", "billing", "amount > 100", "SQL92", 1700000000001, 1700000000000, 0, 112, (15, 11, 6)
        ),
    )


def test_metrics_may_be_negative():
    assert metrics({"timingCount": {"T": {"count": -3, "timeStamp": 9}}}) == {"T": (-3, 9)}


def test_a_clients_own_offsets():
    text = '{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"ShipmentEvents"}:55,"x":1}}'
    actual_client_offsets = client_offsets(parse(text).value)
    assert actual_client_offsets.rows == (ClientOffset("broker-a", "ShipmentEvents", 1, 55),)
    assert actual_client_offsets.problems == ("offsetTable: expected a queue and an offset, found 'x': 1",)


@pytest.mark.parametrize(
    ("key", "number"), [(5, 5), ("5", 5), ("-5", -5), ("", None), ("-", None), ("٣", None), ("9" * 30, None)]
)
def test_integer_keys_bare_or_quoted(key, number):
    assert whole_number(key) == number


READERS = [
    topics,
    subscription_groups,
    consumer_offsets,
    delay_offsets,
    consumer_filters,
    metrics,
    client_offsets,
]
_WORDS = """topicConfigTable subscriptionGroupTable offsetTable lmqOffsetTable filterDataByTopic groupFilterData bitPos
bloomFilterData topicQueueMappingInfoMap hostedQueues messageRequestModeMap timingCount dataVersion counter T T@g
attributes"""
_NAMES = st.sampled_from(_WORDS.split())
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("reader", READERS)
@given(value=st.dictionaries(_NAMES, _ANY, max_size=4))
def test_any_table_gives_rows_and_problems(reader, value):
    assert len(getattr(reader(value), "problems", ())) <= config_tables.MAX_PROBLEMS


def test_problems_are_bounded():
    many = {f"T{n}": 1 for n in range(1000)}
    assert len(topics({"topicConfigTable": many}).problems) == config_tables.MAX_PROBLEMS


def _load(store, name):
    files = {path.name: path.read_bytes() for path in (store / "config").iterdir()}
    return load_table(name, files.get).value


@pytest.mark.golden
def test_tables_of_real_brokers(golden, golden_account):
    store = golden("broker-orders")
    declared = topics(_load(store, "topics.json"))
    assert not declared.problems
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "OrderEvents"} <= {row.name for row in declared.rows}
    assert not subscription_groups(_load(store, "subscriptionGroup.json")).problems
    actual_consumer_offsets = consumer_offsets(_load(store, "consumerOffset.json"))
    assert not actual_consumer_offsets.problems
    reports = {}
    for line in golden_account("broker-orders", "truth.jsonl.xz"):
        if line["kind"] == "progress" and line.get("consumerOffset", -1) >= 0:
            reports[line["group"], line["topic"], line["queueId"]] = line["consumerOffset"]
    ours = {
        (row.group, row.topic, queue): offset
        for row in actual_consumer_offsets.rows
        for queue, offset in row.offsets.items()
    }
    assert reports
    assert {key: ours.get(key) for key in reports} == reports
    assert any(row.mode == "broadcast" for row in actual_consumer_offsets.rows)


@pytest.mark.golden
def test_tables_that_only_some_brokers_have(golden):
    light = consumer_offsets(_load(golden("broker-lmq"), "lmqConsumerOffset.json"))
    assert not light.problems
    assert any(row.mode == "lmq" and row.topic.startswith("%LMQ%") for row in light.rows)
    assert any(row.batch for row in topics(_load(golden("broker-lmq"), "topics.json")).rows)
    levels, problems = delay_offsets(_load(golden("broker-retries"), "delayOffset.json"))
    assert not problems
    assert {1, 2, 3, 4, 9, 18} <= set(levels)
    filters = consumer_filters(_load(golden("broker-sqlfilter"), "consumerFilter.json"))
    assert not filters.problems
    assert all(row.bit_num == 112 and len(row.bit_positions) == 3 for row in filters.rows)


GOOD = b'{"offsetTable":{"T@g":{0:1}}}'
OLD = b'{"offsetTable":{"T@g":{0:0}}}'
VALUE, OLD_VALUE = {"offsetTable": {"T@g": {0: 1}}}, {"offsetTable": {"T@g": {0: 0}}}
CASES = [
    (GOOD, b"garbage", "main", VALUE, "consumerOffset.json is sound"),
    (None, OLD, "bak", OLD_VALUE, "consumerOffset.json is missing, so a broker uses consumerOffset.json.bak"),
    (b"", OLD, "bak", OLD_VALUE, "consumerOffset.json is empty, so a broker uses consumerOffset.json.bak"),
    (GOOD[:-1], OLD, "bak", OLD_VALUE, "consumerOffset.json cannot be read (line 1 column 29 (offset 28): expected"),
    (GOOD + b"}}", OLD, "bak", OLD_VALUE, "consumerOffset.json cannot be read (line 1 column 30 (offset 29): 2 charac"),
    (
        b"[1]",
        OLD,
        "bak",
        OLD_VALUE,
        "consumerOffset.json cannot be read (the table: expected an object with named fields, found a list)",
    ),
    (
        bytes(4096),
        OLD,
        "bak",
        OLD_VALUE,
        "consumerOffset.json cannot be read (line 1 column 1 (offset 0): 4,096 zero bytes",
    ),
    (GOOD + bytes(50), OLD, "main", VALUE, "consumerOffset.json is sound"),
    (b"null", OLD, "main", {}, "consumerOffset.json is sound"),
    (
        None,
        None,
        "defaults",
        {},
        "consumerOffset.json is missing and consumerOffset.json.bak is missing: a broker starts",
    ),
    (b"x", b"", "defaults", {}, "consumerOffset.json cannot be read (line 1 column 1 (offset 0): expected a value, fo"),
    (b"x", b"y", "nothing", {}, "consumerOffset.json cannot be read (line 1 column 1 (offset 0): expected a value, fo"),
]


@pytest.mark.parametrize(("main", "bak", "used", "value", "why"), CASES)
def test_the_file_is_chosen_as_by_a_broker(main, bak, used, value, why):
    table = load_table("consumerOffset.json", {"consumerOffset.json": main, "consumerOffset.json.bak": bak}.get)
    assert (table.used, table.value) == (used, value)
    assert table.why.startswith(why)
    assert table.will_load is (used != "nothing")
    assert table.file == {"main": "consumerOffset.json", "bak": "consumerOffset.json.bak"}.get(used)


def test_the_backup_is_not_read_if_the_file_is_valid():
    names = []

    def read(name):
        names.append(name)
        return GOOD

    assert load_table("topics.json", read).bak is None
    assert names == ["topics.json"]


def test_an_unreadable_file_counts_as_invalid():
    def read(name):
        if name.endswith(".bak"):
            return OLD
        raise PermissionError(13, "Permission denied")

    table = load_table("topics.json", read)
    assert (table.used, table.main.state) == ("bak", "unreadable")
    assert "Permission denied" in table.why


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_two_files_give_a_table(main, bak):
    table = load_table("t", {"t": main, "t.bak": bak}.get)
    assert isinstance(table.value, dict)
    assert table.why


@pytest.mark.golden
@pytest.mark.parametrize(
    "name", ["broker-orders", "broker-orders-4.9.7", "broker-retries", "broker-lmq", "broker-pop", "broker-crash"]
)
def test_every_table_of_a_real_broker_and_its_backup_are_valid(golden, name):
    folder = golden(name) / "config"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    tables = [table for table in TABLES if table in files]
    assert len(tables) >= 2
    for table in tables:
        loaded = load_table(table, files.get)
        assert loaded.used == "main"
        assert not loaded.main.parsed.duplicates
        without = {name: raw for name, raw in files.items() if name != table}
        assert load_table(table, without.get).used == ("bak" if f"{table}.bak" in files else "defaults")
