"""The keys of a unit in the index (docs/formats/index-file.md#keys). This is the only place that defines them.

A unit has an entry for its UNIQ_KEY, one for each piece of KEYS and, since RocketMQ 5.4, one for the complete
value of TAGS. The text of a key is the part after ``topic#`` in the text that is hashed: the key itself, or
``T#`` and the tags. The topic is the one under which the unit is stored. Units that roll a transaction back are
not indexed.

Whether tag entries are written depends on the release that dispatched the unit. Stores that were upgraded or
downgraded have both kinds of ranges, so no reader may call a tag entry wrong if it exists, or missing if it does
not.

Java: ``IndexService.buildIndex``, ``buildKey``.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from engine.codec import properties as props
from engine.codec.java import index_key_hash

IndexType = Literal["K", "U", "T"]
"""Key types as RocketMQ's requests spell them: a piece of KEYS, a unique key or tags."""

INDEX_TYPES: Final[tuple[IndexType, ...]] = get_args(IndexType)
KEY: Final = "K"
UNIQUE_KEY: Final = "U"
TAG: Final = "T"
TAG_PREFIX: Final = "T#"


class IndexKey(NamedTuple):
    """A key of a unit: its type, and its text behind ``topic#``."""

    index_type: IndexType
    text: str


def index_keys(properties: Mapping[str, str], *, tags: bool = True) -> list[IndexKey]:
    """Return the keys of a unit with these properties in the order of their entries; tags only with ``tags``."""
    unique, all_tags = properties.get(props.UNIQUE_KEY), properties.get(props.TAGS)
    keys = [IndexKey(UNIQUE_KEY, unique)] if unique else []
    keys += [IndexKey(KEY, key) for key in props.split_keys(properties.get(props.KEYS))]
    if tags and all_tags:
        keys.append(IndexKey(TAG, TAG_PREFIX + all_tags))
    return keys


def key_text(value: str, index_type: IndexType | None = None) -> str:
    """Return the text behind ``topic#`` under which a key, unique key or tags of this value is indexed."""
    return TAG_PREFIX + value if index_type == TAG else value


def has_key(properties: Mapping[str, str], text: str, index_type: IndexType | None = None) -> bool:
    """Return True if a unit with these properties is indexed under ``text`` (see :func:`key_text`), under any type
    by default.
    """
    index_types = INDEX_TYPES if index_type is None else (index_type,)
    return any(key.text == text and key.index_type in index_types for key in index_keys(properties))


def find_key_of_hash(topic: str, properties: Mapping[str, str], key_hash: int) -> IndexKey | None:
    """Return the unit's key with this hash, None if it has none."""
    keys = index_keys(properties)
    return next((key for key in keys if index_key_hash(topic, key.text) == key_hash), None)
