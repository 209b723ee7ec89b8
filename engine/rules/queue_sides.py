"""Which queues a broker reads and numbers from that writes them into files and into a RocksDB
(``rocksdbCQDoubleWriteEnable``; docs/formats/consume-queue.md#both).
"""

from __future__ import annotations

from typing import Literal

from engine.config import MessageStoreConfig
from engine.releases import Release, rules_of
from engine.sentences import sentence

Side = Literal["files", "rocksdb"]
_SIDES: dict[str, Side] = {"default": "files", "defaultrocksdb": "rocksdb"}


def writes_both(config: MessageStoreConfig | None) -> bool:
    """Return True if the configuration lets a broker write both kinds of queues."""
    return config is not None and config.store_type == "default" and config.rocksdb_cq_double_write_enable


def reading_side(config: MessageStoreConfig, release: Release | None = None) -> Side:
    """Return the queues that consumers of a broker get that writes both; ``release`` None: one that chooses them."""
    return _side(config.combine_cq_prefer_cq_type, release)


def numbering_side(config: MessageStoreConfig, release: Release | None = None) -> Side:
    """Return the queues from which a broker that writes both numbers new messages."""
    return _side(config.combine_assign_offset_cq_type, release)


def _side(store_type: str, release: Release | None) -> Side:
    if release is not None and not rules_of(release).chooses_queue_side:
        return "files"
    return _SIDES.get(store_type.lower(), "files")


def reads_light_from_rocksdb(config: MessageStoreConfig | None, release: Release | None = None) -> bool:
    """Return True if a broker that writes both kinds of queues reads and numbers light queues from the RocksDB."""
    if config is None or not writes_both(config) or not config.combine_cq_use_rocksdb_for_lmq:
        return False
    return release is None or rules_of(release).light_queues_in_rocksdb


def refusal(config: MessageStoreConfig | None, release: Release | None = None) -> str:
    """Return why a broker that writes both does not start with its configuration; "" if it does."""
    if config is None or not writes_both(config) or (release is not None and not rules_of(release).chooses_queue_side):
        return ""
    loaded = loaded_sides(config)
    for key, value in (
        ("combineAssignOffsetCQType", config.combine_assign_offset_cq_type),
        ("combineCQPreferCQType", config.combine_cq_prefer_cq_type),
    ):
        if _SIDES.get(value.lower()) not in loaded:
            return sentence(
                "{key}={value} names no queues that combineCQLoadingCQTypes={loading} opens: the broker does not start",
                key=key,
                value=value,
                loading=config.combine_cq_loading_cq_types,
            )
    if release is None or rules_of(release).light_queues_in_rocksdb:
        return _refusal_of_5_5(config, release)
    return ""


def _refusal_of_5_5(config: MessageStoreConfig, release: Release | None) -> str:
    sides = {
        "combineAssignOffsetCQType": numbering_side(config, release),
        "combineCQPreferCQType": reading_side(config, release),
    }
    for key, is_on, keys in (
        ("combineCQUseRocksdbForLmq", config.combine_cq_use_rocksdb_for_lmq, ("combineAssignOffsetCQType",)),
        ("rocksdbCQSelectiveDoubleWriteEnable", config.rocksdb_cq_selective_double_write_enable, tuple(sides)),
    ):
        wrong = next((name for name in keys if is_on and sides[name] != "files"), None)
        if wrong is not None:
            return sentence(
                "a broker of 5.5 with {key}=true does not start unless {other} is default", key=key, other=wrong
            )
    if config.combine_cq_use_rocksdb_for_lmq and "rocksdb" not in loaded_sides(config):
        return sentence(
            "a broker of 5.5 with {key}=true does not start unless combineCQLoadingCQTypes has defaultRocksDB",
            key="combineCQUseRocksdbForLmq",
        )
    return ""


def loaded_sides(config: MessageStoreConfig) -> frozenset[Side]:
    """Return the queues that a broker opens that writes both."""
    names = (name.strip().lower() for name in config.combine_cq_loading_cq_types.split(";"))
    return frozenset(_SIDES[name] for name in names if name in _SIDES)
