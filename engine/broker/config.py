"""Configuration of a broker in ``broker.conf``: options that clients notice are here, options of the store are in
:mod:`engine.config`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from engine.config import OTHER_KEYS, MessageStoreConfig, parse_properties
from engine.files.properties_file import read_text
from engine.remoting.settings import key, key_value_pairs, overlay
from engine.system_names import TRACE_TOPIC

PORT = 10_911


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Options of RocketMQ's ``broker.conf`` that change an answer here. Times are ms."""

    broker_name: str = key("brokerName", "broker-a")
    cluster: str = key("brokerClusterName", "DefaultCluster")
    broker_id: int = key("brokerId", 0)
    broker_ip: str = key("brokerIP1", "127.0.0.1")
    """The address that routes name: clients connect to it."""
    listen_port: int = key("listenPort", PORT)
    namesrv_addr: str = key("namesrvAddr", "")
    permission: int = key("brokerPermission", 6)
    region_id: str = key("regionId", "DefaultRegion")
    trace_on: bool = key("traceOn", default=True)
    trace_topic_enable: bool = key("traceTopicEnable", default=False)
    trace_topic: str = key("msgTraceTopicName", TRACE_TOPIC)
    pages_tables: bool = key("enableSplitMetadata", default=True)
    """Answer topics and groups in pages, where the store's release does and the request asks for one."""
    table_page_size: int = key("splitMetadataSize", 2_000)
    default_topic_queues: int = key("defaultTopicQueueNums", 8)
    auto_create_topic: bool = key("autoCreateTopicEnable", default=True)
    auto_create_group: bool = key("autoCreateSubscriptionGroup", default=True)
    cluster_topic: bool = key("clusterTopicEnable", default=True)
    broker_topic: bool = key("brokerTopicEnable", default=True)
    long_polling: bool = key("longPollingEnable", default=True)
    short_polling_ms: int = key("shortPollingTimeMills", 1_000)
    lite_pull: bool = key("litePullMessageEnable", default=True)
    property_filter: bool = key("enablePropertyFilter", default=False)
    calc_bit_map: bool = key("enableCalcFilterBitMap", default=False)
    filter_lives_ms: int = key("filterDataCleanTimeSpan", 24 * 3_600_000)
    """How long a group's filter is kept once no member of it is connected."""
    filter_retry: bool = key("filterSupportRetry", default=False)
    reject_transactions: bool = key("rejectTransactionMessage", default=False)
    transaction_timeout_ms: int = key("transactionTimeOut", 6_000)
    transaction_checks: int = key("transactionCheckMax", 15)
    transaction_check_interval_ms: int = key("transactionCheckInterval", 30_000)
    transaction_metric_flush_ms: int = key("transactionMetricFlushInterval", 0)
    """0: the default of the store's release."""
    offset_saving_ms: int = key("flushConsumerOffsetInterval", 5_000)
    registration_ms: int = key("registerNameServerPeriod", 30_000)
    accept_sends_from: int = key("startAcceptSendRequestTimeStamp", 0)
    """Sends are refused before that time (ms since the epoch)."""
    store_replies: bool = key("storeReplyMessageEnable", default=True)
    slave_read: bool = key("slaveReadEnable", default=False)
    notify_consumers: bool = key("notifyConsumerIdsChangedEnable", default=True)
    recall_message: bool = key("recallMessageEnable", default=False)
    revive_queues: int = key("reviveQueueNum", 8)
    revive_interval_ms: int = key("reviveInterval", 1_000)
    pop_holds: int = key("maxPopPollingSize", 100_000)
    """Maximum number of held pops."""
    pop_holds_at: int = key("popPollingSize", 1_024)
    """Maximum number of held pops per topic, group and queue."""
    pop_notify_interval: int = key("popLongPollingForceNotifyInterval", 800)
    """After this many messages a held pop is woken without a look at its filter."""
    pop_from_retry: int = key("popFromRetryProbability", 20)
    """Percentage of pops that read the retry topic first."""
    pop_from_retry_for_priority: int = key("popFromRetryProbabilityForPriority", 0)
    """The same for pops that read the highest priority first."""
    priority_ascending: bool = key("priorityOrderAsc", default=True)
    """The highest queue is read first; False: queue 0."""
    separate_retry_queues: bool = key("useSeparateRetryQueue", default=False)
    """The retry topic of a pop has the queues of its topic, and a message returns to the queue that it came from."""
    pop_from_retry_v1: bool = key("retrieveMessageFromPopRetryTopicV1", default=True)
    retry_topic_v2: bool = key("enableRetryTopicV2", default=False)
    return_retry_topic: bool = key("popResponseReturnActualRetryTopic", default=False)
    pop_young_queues_whole: bool = key("initPopOffsetByCheckMsgInMem", default=True)
    gives_up_reviving: bool = key("skipWhenCKRePutReachMaxTimes", default=False)
    reports_free_queues: bool = key("enableNotifyAfterPopOrderLockRelease", default=True)
    request_mode: str = key("defaultMessageRequestMode", "PULL")
    """PULL or POP: how consumers get messages if the broker assigns the queues."""
    pop_share_queues: int = key("defaultPopShareQueueNum", -1)
    server_shares: bool = key("serverLoadBalancerEnable", default=True)
    route_poll_ms: int = key("loadBalancePollNameServerInterval", 30_000)
    acl_enable: bool = key("aclEnable", default=False)
    authentication: bool = key("authenticationEnabled", default=False)
    controller_mode: bool = key("enableControllerMode", default=False)
    """The store's epochs are reported; nothing else changes."""
    client_idle_s: int = key("serverChannelMaxIdleTimeSeconds", 120)

    def lines(self) -> list[tuple[str, str]]:
        """Return keys and values, as ``getBrokerConfig`` shows them. Controller mode is left out: our HA port does not
        ask for terms, and replicas may follow it.
        """
        return [(name, value) for name, value in key_value_pairs(self) if name != "enableControllerMode"]


def read_config(path: Path | str) -> tuple[BrokerConfig, MessageStoreConfig, list[str]]:
    """Read both halves of a ``broker.conf``. Also return its keys that are unknown or have no effect here.

    Raises :class:`CannotRead`, or :class:`UsageError` with file, line and what was expected.
    """
    text = read_text(path)
    store, unknown = parse_properties(text, file=str(path))
    store = replace(store, file=str(path))
    broker, other_keys = overlay(BrokerConfig(), text, str(path))
    without_effect = [name for name in other_keys if name in OTHER_KEYS or name in unknown]
    return broker, store, list(dict.fromkeys(without_effect))
