"""Configurations to begin a lab store with, and every value that can be set, with its default, range and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from engine.config import PATH_KEYS, MessageStoreConfig

_MIB = 1 << 20
NOT_IN_A_LAB = PATH_KEYS | {"storeType", "enableDLegerCommitLog"}
"""Keys that a lab store refuses: they would lead out of its directory, or to a kind of store that is not written."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A name, the attributes of :class:`MessageStoreConfig` that differ from a broker's, and what is to be seen."""

    name: str
    changes: Mapping[str, bool | int | str]
    words: str

    @property
    def config(self) -> MessageStoreConfig:
        """The complete configuration."""
        return with_changes(MessageStoreConfig(), self.changes)


PRESETS = (
    Preset("default broker", {}, "RocketMQ's own values: asynchronous flush every 500 ms, log files of 1 GiB."),
    Preset(
        "synchronous", {"flush_disk_type": "SYNC_FLUSH"}, "Every put waits until its bytes are on disk: group commit."
    ),
    Preset(
        "transient pool",
        {"transient_store_pool_enable": True, "mapped_file_size_commit_log": 64 * _MIB},
        "Puts go to memory first and reach the page cache by commit; what waits there is lost with the process. "
        "Log files of 64 MiB, so that the pool's five buffers stay small.",
    ),
    Preset(
        "tiny files",
        {
            "mapped_file_size_commit_log": _MIB,
            "max_message_size": _MIB // 2,
            "mapped_file_size_consume_queue": 6000,
            "max_hash_slot_num": 1000,
            "max_index_num": 4000,
        },
        "Log files of 1 MiB, queue files of 300 entries, index files of 4,000 entries: files roll while you watch.",
    ),
)


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A value of the configuration. ``kind`` is flag, number, share or text; ``minimum`` and ``maximum`` bound numbers
    in ``unit``; ``choices`` are all texts permitted, () for any. ``fixed`` says that a lab store keeps the default.
    """

    key: str  # as RocketMQ spells it
    attribute: str
    kind: str
    default: bool | int | float | str
    meaning: str
    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False


def config_rows() -> tuple[ConfigRow, ...]:
    """Return every setting of a store, in the order of the configuration's page."""
    rows = []
    for item in fields(MessageStoreConfig):
        about = item.metadata
        if "java" not in about:
            continue
        default: bool | int | float | str = item.default  # type: ignore[assignment]  # all of them have one
        kinds = {bool: "flag", int: "number", float: "share", str: "text"}
        rows.append(
            ConfigRow(
                about["java"],
                item.name,
                kinds[type(default)],
                default,
                about["meaning"],
                about["unit"],
                about.get("low"),
                about.get("high"),
                about["choices"] or (),
                about["java"] in NOT_IN_A_LAB,
            )
        )
    return tuple(rows)


def changes_of(config: MessageStoreConfig) -> dict[str, bool | int | float | str]:
    """Return RocketMQ's keys whose values differ from their defaults: the content of a configuration file."""
    changes: dict[str, bool | int | float | str] = {}
    for row in config_rows():
        value = getattr(config, row.attribute)
        if value != row.default:
            changes[row.key] = value
    return changes


def with_changes(config: MessageStoreConfig, changes: Mapping[str, bool | int | float | str]) -> MessageStoreConfig:
    """Return ``config`` with other values of the named attributes, which then count as configured."""
    keys = {row.attribute: row.key for row in config_rows()}
    return replace(config, given=config.given | {keys[name] for name in changes}, **dict(changes))  # type: ignore[arg-type]
