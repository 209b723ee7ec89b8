"""Every grouping covers the whole directory: areas add up to all of its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.account import Space, quick_space, space_of
from viewer.runtime.places import Place, Search
from viewer.space.areas import GROUPINGS, MAX_AREAS, MEASURES, REST_PREFIX, area_of, file_count
from viewer.widgets.areas import Area, find


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = HandmadeStore()
    for number in range(90):
        store.put(
            topic=("Orders", "Paid")[number % 2],
            queue_id=number % 3,
            tags=("A", 'B"', None)[number % 3],
            step=3_600_000,
        )
    return store.write(tmp_path_factory.mktemp("tree") / "store")


@pytest.fixture(scope="module")
def space(root: Path) -> Space:
    with open_store(root) as store:
        return space_of(store)


def is_sum_of_children(area: Area) -> bool:
    """Return True if every area is the sum of its children."""
    return all(is_sum_of_children(child) for child in area.children) and (
        not area.children or area.bytes == sum(child.bytes for child in area.children)
    )


@pytest.mark.parametrize("grouping", [key for key, _ in GROUPINGS])
@pytest.mark.parametrize("measure", [key for key, _ in MEASURES])
def test_areas_add_up_to_the_directory(space: Space, grouping, measure) -> None:
    tree = area_of(space, grouping, measure)
    named = grouping in {"tag", "producer"} and measure == "allocated"
    if not named:  # tags and hosts are told in bytes of units only
        assert sum(child.bytes for child in tree.children) == (space.bytes if measure == "bytes" else space.allocated)
    assert all(is_sum_of_children(child) for child in tree.children)


def test_a_topic_has_its_queues_and_they_their_days(space: Space) -> None:
    orders = find(area_of(space, "topic"), ("Orders",))
    assert orders is not None
    assert orders.target == Place("queue", topic="Orders")
    queue = orders.children[0]
    assert queue.target == Place("queue", topic="Orders", queue_id=int(queue.key))
    days = [day.key for day in queue.children]
    assert days == sorted(days)
    ages = [day.age for day in queue.children]
    assert ages == sorted(ages)
    assert ages[-1] == 1.0
    assert isinstance(queue.children[0].target, Search)


def test_a_tag_leads_to_the_log_under_a_filter(space: Space) -> None:
    from engine.query import parse

    area = find(area_of(space, "tag"), ("Orders", 'B"'))
    assert area is not None
    assert isinstance(area.target, Place)
    assert parse(area.target.name)
    without = find(area_of(space, "tag"), ("Orders", "-"))
    assert without is not None
    assert without.target is None


def test_producers_and_days_are_groups_too(space: Space) -> None:
    host = find(area_of(space, "producer"), ("127.0.0.1", "Paid"))
    assert host is not None
    assert host.topic == "Paid"
    days = [area for area in area_of(space, "day").children if not area.key.startswith(REST_PREFIX)]
    assert len(days) >= 4
    assert all(isinstance(day.target, Search) for day in days)


def test_before_the_walk_tags_fall_back_to_topics(root: Path) -> None:
    with open_store(root) as store:
        space = quick_space(store)
    assert find(area_of(space, "tag"), ("Orders",)) is not None


def test_too_many_areas_become_one(tmp_path: Path) -> None:
    made_store = HandmadeStore()
    for number in range(MAX_AREAS + 20):
        made_store.put(topic=f"Topic{number:03d}")
    with open_store(made_store.write(tmp_path / "store")) as store:
        space = space_of(store)
    tree = area_of(space, "topic")
    assert len(tree.children) == MAX_AREAS
    assert sum(child.bytes for child in tree.children) == space.bytes
    assert find(tree, ("\x00more",)) is not None


def test_files_are_counted_once(space: Space, root: Path) -> None:
    assert file_count(space, "index") == len(list((root / "index").iterdir()))
    assert file_count(space, "commitlog/blank") == 0
