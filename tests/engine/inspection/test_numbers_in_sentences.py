"""Numbers in the sentences of a check have separators: 1,048,097 and not 1048097. File names and numbers that a user
searches for (CRCs, hashes, tag codes) have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import incident_states as states
import pytest
from broken_stores import BROKEN, CONFIG
from handmade_stores import healthy

from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store

BARE = re.compile(r"(?<![\w,.:/@#%+-])\d{5,}(?![\w:/@-]|\.\w)")
AS_IT_STANDS = re.compile(r"(CRC is|hash|has tag code|gives) -?\d+")
INCIDENTS = [
    state
    for name, state in vars(states).items()
    if name
    in (
        "hole",
        "tail_not_dispatched",
        "tail_of_next_to_last_file",
        "pages_of_queues_lost",
        "pages_lost_and_closed",
        "queue_folder_lost",
        "index_behind_the_checkpoint",
        "magic_code_lost",
        "tail_of_log_zero",
        "middle_file_lost",
        "empty_log_file",
        "name_that_is_no_number",
        "index_files_turned_round",
    )
]


def sentences(value: Any) -> Iterator[str]:
    """Return all texts of a record except paths and commands, which are typed unchanged."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from () if name in ("file", "command", "brokerLog") else sentences(item)
    elif isinstance(value, list):
        for item in value:
            yield from sentences(item)


def sentences_with_bare_numbers(root: Path, config: MessageStoreConfig | None = None) -> list[str]:
    """Return sentences of a check with a number that has no separators."""
    names = {path.name for path in root.rglob("*")}
    with open_store(root, config) as store:
        texts = [text for item in check(store) for text in sentences(item.record())]
    assert texts
    return [text for text in texts if _numbers(AS_IT_STANDS.sub("", text)) - names]


def _numbers(text: str) -> set[str]:
    names_of_files = {len("00000000000001048576"), len("20261121081026770")}
    return {number for number in BARE.findall(text) if len(number) not in names_of_files}


@pytest.mark.full_form(keep=15)
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_numbers_of_a_small_stores_findings(rule, tmp_path):
    store = healthy()
    for _ in range(12):
        store.put(body=b"x" * 900)
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    assert sentences_with_bare_numbers(root, CONFIG.get(rule)) == []


@pytest.mark.full_form(keep=6)
@pytest.mark.golden
@pytest.mark.parametrize("state", INCIDENTS, ids=lambda state: state.__name__)
def test_numbers_of_a_brokers_store(state, golden, tmp_path):
    """The text about a log that lost its tail contained "below 2403180", in Chinese too."""
    assert sentences_with_bare_numbers(states.build(golden("broker-orders"), tmp_path / "store", state)) == []
