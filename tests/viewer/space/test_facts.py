"""Facts of an area, of the forecast, of the page cache."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.retention import Reader, Retention, retention
from engine.inspection.space.account import Space, quick_space, space_of
from engine.inspection.space.page_cache import FileCache, KindCache, PageCache
from viewer.space import facts as space_facts
from viewer.space.areas import area_of
from viewer.widgets.areas import find

DAY = 86_400_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = HandmadeStore()
    for number in range(120):
        store.put(topic=("Orders", "%RETRY%g", "Paid")[number % 3], queue_id=number % 2, tags="A", step=DAY // 6)
    return store.write(tmp_path_factory.mktemp("rows") / "store")


@pytest.fixture(scope="module")
def space(root: Path) -> Space:
    with open_store(root) as store:
        return space_of(store)


@pytest.fixture(scope="module")
def forecast(root: Path) -> Retention:
    with open_store(root) as store:
        return retention(store, round(time.time() * 1000), (0.1, 0.1))


def test_facts_of_an_area_and_of_everything(space: Space) -> None:
    root = area_of(space, "topic")
    facts = {fact.name: fact for fact in space_facts.area_facts(space, ("Orders",), find(root, ("Orders",)))}
    assert facts["By tag"].value.startswith("A ")
    assert facts["Producers"].value.startswith("127.0.0.1")
    assert "filled" in facts["Queues"].note
    names = [fact.name for fact in space_facts.area_facts(space, (), None)]
    assert names[0] == "All files"
    assert names[-1] == "Dead"


def test_the_forecast_in_sentences(forecast: Retention) -> None:
    from dataclasses import replace

    text = " ".join(space_facts.retention_sentences(forecast))
    assert "No disk is over 75%" in text
    assert "No broker holds this store" in text
    reader = Reader("late", "group", 0, "Orders", 0, below=1)
    files = tuple(replace(file, readers=("late",)) for file in forecast.files)
    risky = " ".join(space_facts.retention_sentences(replace(forecast, readers=(reader,), files=files)))
    assert "Below the minimum already: late" in risky
    if forecast.next_files:
        assert "Still read there by late" in risky
    assert "The log has no files." in space_facts.retention_sentences(replace(forecast, files=()))


def test_blocks_and_flags_of_the_line(space: Space, forecast: Retention) -> None:
    cache = PageCache(tuple(FileCache(f.name, f.start_offset, f.size, 10, (1.0,)) for f in forecast.files))
    blocks = space_facts.blocks_of(forecast, cache, space)
    assert [block.name for block in blocks] == [file.name for file in forecast.files]
    assert all(block.shares == (1.0,) for block in blocks)
    assert "10 B of it in memory" in blocks[0].words
    assert "the newest file is never deleted" in blocks[-1].words
    flags = space_facts.flags_of(forecast, space)
    assert bool(flags) == bool(forecast.next_files)


def test_the_page_cache_in_words() -> None:
    assert space_facts.cache_words(None) == ""
    assert space_facts.cache_words(PageCache(why="no mincore")) == "Not known: no mincore"
    words = space_facts.cache_words(PageCache((), (KindCache("commitlog", 1, 2048, 1024),)))
    assert words == "Commit log 1.00 KiB of 2.00 KiB"


def test_the_status_says_how_it_is_known(space: Space, root: Path) -> None:
    assert "the log was walked" in space_facts.status_words(space)
    with open_store(root) as store:
        assert "file lists and queues" in space_facts.status_words(quick_space(store))
