"""The verdict on a message, from its units and the facts around them, without a store."""

from __future__ import annotations

import pytest
from raw_units import raw_unit

from engine.codec.message import COMMIT, PREPARED, ROLLBACK, decode
from engine.rules import where as rules
from engine.system_names import SCHEDULE_TOPIC

LISTED = rules.QueuePlace("listed")
END = 1 << 20


def unit(topic="Orders", offset=0, sys_flag=0, body=b"hello", crc=None, queue_offset=5, **properties):
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    return decode(
        raw_unit(
            offset,
            topic=topic.encode(),
            properties=text,
            sys_flag=sys_flag,
            body=body,
            body_crc=crc,
            queue_offset=queue_offset,
        ),
        base=offset,
    )


def facts(**options):
    values = {"place": LISTED, "in_index": True, "settled_halves": frozenset(), "log_end": END}
    return rules.Facts(**{**values, **options})


HALF = unit(rules.HALF_TOPIC, 0, REAL_TOPIC="Orders", queue_offset=3)
COMMITTED = unit("Orders", 1000, COMMIT, REAL_TOPIC="Orders")
CHECKED = unit(rules.HALF_TOPIC, 2000, REAL_TOPIC="Orders", queue_offset=9)
GIVEN_UP = unit(rules.CHECK_MAX_TOPIC, 3000, REAL_TOPIC="Orders")
WAITING = unit(SCHEDULE_TOPIC, 0, REAL_TOPIC="Orders", DELAY="3")
DELIVERED = unit("Orders", 1000, REAL_TOPIC="Orders", DELAY="3")
TIMED = unit(rules.TIMER_TOPIC, 0, REAL_TOPIC="Orders", TIMER_OUT_MS="1795248759000")
RECALL = unit(rules.TIMER_TOPIC, 2000, TIMER_DEL_UNIQKEY="Orders+K")
PLAIN = unit("Orders", 0)
RETRY_WAITING = unit(SCHEDULE_TOPIC, 1000, REAL_TOPIC="%RETRY%billing", DELAY="3")
RETRY = unit("%RETRY%billing", 2000)
DEAD = unit("%DLQ%billing", 3000)
OLD_ROLLBACK = unit("Orders", 0, ROLLBACK)
DIRECT_HALF = unit("Orders", 0, PREPARED)
BAD = unit("Orders", 0, crc=1)

ABSENT, NO_QUEUE = rules.QueuePlace("absent"), rules.QueuePlace("noQueue")
AFTER_LAST, DIFFERENT_TAG = rules.QueuePlace("behind"), rules.QueuePlace("otherTag")

CASES = [
    pytest.param([PLAIN], {}, "found", id="stored and listed"),
    pytest.param([PLAIN], {"in_index": None}, "found", id="without keys there is nothing to index"),
    pytest.param([PLAIN], {"in_index": False}, "notInIndex", id="no index entry"),
    pytest.param([PLAIN], {"place": ABSENT, "in_index": False}, "notInQueue", id="the queue comes before the index"),
    pytest.param([PLAIN], {"place": NO_QUEUE}, "notInQueue", id="no queue folder"),
    pytest.param([PLAIN], {"place": AFTER_LAST}, "notYetDispatched", id="dispatch is behind"),
    pytest.param([PLAIN], {"place": DIFFERENT_TAG}, "hiddenByTag", id="another tag code in the entry"),
    pytest.param([PLAIN], {"filter_matches": False}, "hiddenByTag", id="the group's filter does not match"),
    pytest.param([PLAIN], {"log_end": 0}, "truncated", id="behind the end of the log"),
    pytest.param([BAD], {"log_end": 0}, "damaged", id="where a wrong body ends the log, it is damaged itself"),
    pytest.param([BAD], {}, "damaged", id="a wrong body"),
    pytest.param([HALF], {}, "half", id="half, never answered"),
    pytest.param([DIRECT_HALF], {}, "half", id="half by its flag"),
    pytest.param([OLD_ROLLBACK], {}, "rolledBack", id="rollback by its flag"),
    pytest.param([HALF], {"place": AFTER_LAST}, "notYetDispatched", id="half, dispatch behind"),
    pytest.param([HALF], {"settled_halves": frozenset({3})}, "rolledBack", id="answered and not committed"),
    pytest.param([HALF], {"settled_halves": frozenset({4})}, "half", id="another half was answered"),
    pytest.param([HALF, COMMITTED], {"settled_halves": frozenset({3})}, "found", id="committed"),
    pytest.param([HALF, COMMITTED, CHECKED], {}, "found", id="committed, then checked again"),
    pytest.param([HALF, COMMITTED, CHECKED, GIVEN_UP], {}, "found", id="committed, then given up"),
    pytest.param([HALF, CHECKED, GIVEN_UP], {}, "half", id="given up"),
    pytest.param([HALF, GIVEN_UP], {"settled_halves": frozenset({3})}, "rolledBack", id="rolled back, then given up"),
    pytest.param([WAITING], {}, "delayed", id="waits for its delay"),
    pytest.param([WAITING], {"place": ABSENT}, "notInQueue", id="the delay queue has lost it: it is never delivered"),
    pytest.param([WAITING], {"place": AFTER_LAST}, "notYetDispatched", id="delayed, dispatch behind"),
    pytest.param([WAITING, DELIVERED], {}, "found", id="delivered after its delay"),
    pytest.param([TIMED], {}, "delayed", id="waits in the wheel"),
    pytest.param([TIMED], {"place": ABSENT}, "delayed", id="the wheel needs no queue entry any more"),
    pytest.param([TIMED, RECALL], {}, "rolledBack", id="called back"),
    pytest.param([TIMED, DELIVERED, RECALL], {}, "found", id="called back too late"),
    pytest.param([PLAIN, RETRY_WAITING], {}, "retried", id="waits for its next delivery"),
    pytest.param([PLAIN, RETRY_WAITING, RETRY], {}, "retried", id="delivered again"),
    pytest.param([PLAIN, RETRY_WAITING, RETRY, DEAD], {}, "deadLetter", id="dead"),
    pytest.param([PLAIN, RETRY], {"place": ABSENT}, "notInQueue", id="the retry queue has lost it"),
]


@pytest.mark.parametrize(("family", "changed_facts", "verdict"), CASES)
def test_verdict_and_next_step(family, changed_facts, verdict):
    assert rules.conclude(family, facts(**changed_facts)) == verdict
    assert rules.next_step(verdict, rules.deciding_unit(family), facts(**changed_facts))


GROUP_CASES = [
    pytest.param("found", PLAIN, {}, "found", id="no group asked"),
    pytest.param("found", PLAIN, {"group_known": True}, "notConsumed", id="a group without an offset"),
    pytest.param("found", PLAIN, {"group_known": True, "group_offset": 5}, "notConsumed", id="next to be read"),
    pytest.param("found", PLAIN, {"group_known": True, "group_offset": 6}, "consumed", id="read"),
    pytest.param("notInIndex", PLAIN, {"group_known": True, "group_offset": 6}, "consumed", id="queues need no index"),
    pytest.param("retried", RETRY, {"group_known": True, "group_offset": 6}, "consumed", id="read again"),
    pytest.param("retried", RETRY, {"group_known": True, "group_offset": 5}, "retried", id="to be read again"),
    pytest.param("retried", RETRY_WAITING, {"group_known": True, "group_offset": 99}, "retried", id="still waiting"),
    pytest.param("hiddenByTag", PLAIN, {"group_known": True, "group_offset": 6}, "hiddenByTag", id="passed over"),
    pytest.param("truncated", PLAIN, {"group_known": True, "group_offset": 6}, "truncated", id="read, then cut off"),
]


@pytest.mark.parametrize(("verdict", "group", "changed_facts", "expected"), GROUP_CASES)
def test_a_group_refines_the_verdict(verdict, group, changed_facts, expected):
    assert rules.with_group(verdict, group, facts(**changed_facts)) == expected


def test_other_groups_retries_are_left_out():
    family = [PLAIN, RETRY_WAITING, RETRY, DEAD, unit("%RETRY%billing_Orders", 4000)]
    assert rules.of_group(family, None) == family
    assert rules.of_group(family, "billing") == family
    assert rules.of_group(family, "bill") == [PLAIN]


def batch_element(number, body):
    text = f"KEYS\x01K{number}\x02UNIQ_KEY\x01own{number}\x02UNIQ_KEY\x01shared\x02".encode()
    return decode(raw_unit(number * 1000, properties=text, body=body), base=number * 1000)


def test_elements_of_a_batch_are_separate_messages():
    element_0, element_1 = batch_element(0, b"one"), batch_element(1, b"two")
    assert (element_0.unique_key, rules.own_key(element_0)) == ("shared", "own0")
    retry = unit("%RETRY%g", 5000, body=b"?", UNIQ_KEY="shared", ORIGIN_MESSAGE_ID=element_1.offset_msg_id)
    by_body = unit("%RETRY%g", 6000, body=b"one", UNIQ_KEY="shared")
    unrelated = unit("%RETRY%g", 7000, body=b"three", UNIQ_KEY="shared")
    assert rules.messages([element_0, element_1, retry, by_body, unrelated]) == [
        [element_0, by_body],
        [element_1, retry],
        [unrelated],
    ]


def test_units_with_one_key_are_one_message():
    family = [unit("Orders", 0, UNIQ_KEY="k"), unit("%RETRY%g", 1000, UNIQ_KEY="k"), unit("%DLQ%g", 2000, UNIQ_KEY="k")]
    assert rules.messages(family) == [family]


def test_units_without_a_key_are_separate_messages():
    assert rules.messages([PLAIN, DEAD]) == [[PLAIN], [DEAD]]


@pytest.mark.parametrize("verdict", rules.NEXT_STEPS)
def test_every_verdict_has_a_next_step_of_one_line(verdict):
    assert rules.NEXT_STEPS[verdict].endswith(".")
    assert "\n" not in rules.NEXT_STEPS[verdict]


def test_a_group_that_the_broker_refuses_is_named_where_it_has_not_read_the_message():
    """The advice was "Look at the group's progress and its subscription", for a group whose reads the broker
    refuses.
    """
    waiting = rules.GroupReach("billing", 5, "billing reads 5 next", 9, "billing may not consume")
    past = rules.GroupReach("audit", 6, "audit reads 6 next", 9, "audit may not consume")
    ways = {route.value: route for route in rules.routes(PLAIN, facts(groups=(waiting, past)))}
    assert (ways["billing"].verdict, ways["billing"].barred) == ("notConsumed", "billing may not consume")
    assert ways["audit"].barred == ""
    assert rules.next_step("found", PLAIN, facts(groups=(waiting, past))) == rules.BARRED_GROUP_STEP
    assert rules.next_step("found", PLAIN, facts(groups=(past,))) == rules.NEXT_STEPS["found"]
