"""State of the Space view, without a window: counts, forecasts, and what is selected together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.account import KindSpace, Space, space_of
from viewer.runtime.places import Place
from viewer.space.areas import REST_PREFIX
from viewer.space.space_model import QUICK_ACCOUNT_BYTES, QUICK_ACCOUNT_MS, SpaceModel, place_of_key
from viewer.space.work import Forecast


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Space:
    made_store = HandmadeStore()
    for number in range(9):
        made_store.put(topic="Paid" if number % 3 == 0 else "Orders", queue_id=number % 2, tags="A")
    with open_store(made_store.write(tmp_path_factory.mktemp("space") / "store")) as store:
        return space_of(store)


@pytest.fixture
def counted(account: Space) -> SpaceModel:
    model = SpaceModel()
    model.open(has_store=True)
    assert model.begin()
    assert model.begin_count()
    model.end_count(account)
    return model


def slow(account: Space) -> Space:
    """Return the account of a large store that took long."""
    large = KindSpace("commitlog", 9, 2 * QUICK_ACCOUNT_BYTES, 2 * QUICK_ACCOUNT_BYTES)
    return replace(account, took_ms=2 * QUICK_ACCOUNT_MS, kinds=(large,))


def test_counting_begins_once_for_each_store_and_never_twice_at_a_time():
    model = SpaceModel()
    assert not model.begin()
    assert not model.begin_count()
    model.open(has_store=True)
    assert model.table_state().kind == "loading"
    assert (model.begin(), model.begin()) == (True, False)
    assert (model.begin_count(), model.begin_count()) == (True, False)
    assert model.is_busy()
    model.open(has_store=True)
    assert (model.begin(), model.begin_count()) == (True, True)


def test_another_store_forgets_the_account_and_keeps_how_it_is_grouped(counted: SpaceModel):
    counted.group_by("day", "bytes")
    counted.pending_topic = "Orders"
    counted.open(has_store=False)
    assert (counted.account, counted.rows, counted.root.children, counted.forecast) == (None, [], (), None)
    assert (counted.grouping, counted.measure, counted.pending_topic) == ("day", "bytes", "Orders")
    assert (counted.table_state(), counted.count_state(), counted.map_words()) == (None, None, "")


def test_an_account_of_a_running_count_is_shown_at_once(account: Space):
    model = SpaceModel()
    model.open(has_store=True)
    model.begin_count()
    model.take_account(replace(account, method="queues"))
    assert model.running
    assert not model.is_busy()
    assert model.table_state() is None
    assert model.days_words() == "The days are known when the log was walked."
    assert [row.key for row in model.rows if row.kind == "topic"] == ["Orders", "Paid"]
    assert "most bytes first" in model.table_note()


def test_a_stopped_count_says_so_and_can_go_on(account: Space):
    model = SpaceModel()
    model.open(has_store=True)
    model.begin_count()
    model.end_count(None)
    assert (model.count_state().kind, model.count_state().step) == ("cut", "Go on")
    assert model.table_state() is None
    assert model.begin_count()
    assert model.table_state().kind == "loading"
    model.end_count(replace(account, method="cut"))
    assert model.count_state().kind == "cut"
    model.begin_count()
    model.end_count(replace(account, method="unread"))
    assert model.count_state() is None
    assert "as far as it can be read" in model.status(is_complete=False)
    model.begin_count()
    model.end_count(account)
    assert model.count_state() is None


def test_a_failed_count_gives_its_reason_until_another_succeeds(account: Space):
    model = SpaceModel()
    model.open(has_store=True)
    model.begin_count()
    model.fail("no such folder")
    assert (model.table_state().kind, model.map_words()) == ("error", "no such folder")
    assert model.begin_count()
    model.end_count(account)
    assert (model.table_state(), model.map_words()) == (None, "The directory holds no bytes.")


def test_a_store_that_grows_is_counted_again_or_called_old(counted: SpaceModel, account: Space):
    assert counted.grow()
    assert counted.is_quick
    assert counted.count_state() is None
    counted.take_account(slow(account))
    assert counted.grow()
    assert not counted.is_quick
    assert (counted.count_state().kind, counted.count_state().step) == ("stale", "Refresh")
    counted.begin_count()
    assert not counted.grow()
    counted.end_count(account)
    assert counted.count_state() is None


def test_a_partial_forecast_never_replaces_a_forecast():
    model = SpaceModel()
    partial, complete = Forecast(None, None), Forecast(None, None)
    model.fail_forecast("cannot be read")
    assert model.forecast_error == "cannot be read"
    assert model.take_forecast(partial, is_partial=True)
    assert model.forecast_error == ""
    assert model.take_forecast(complete)
    assert not model.take_forecast(partial, is_partial=True)
    assert model.forecast is complete
    model.fail_forecast("cannot be read")
    assert (model.forecast, model.forecast_error) == (complete, "")


def test_rows_and_areas_are_chosen_with_each_other(counted: SpaceModel):
    orders, total = counted.rows[counted.index_of("Orders")], counted.rows[-1]
    assert counted.path_of_row(orders) == ("Orders",)
    assert counted.path_of_row(total) == ()
    assert counted.path_of_row(None) is None
    assert counted.key_of_area(("Orders",)) == counted.key_of_area(("Orders", "1")) == "Orders"
    assert counted.key_of_area(()) is None
    assert counted.facts(("Orders",))
    assert counted.queue_bars(("Orders",))[0] == "Orders"
    counted.group_by("day", "bytes")
    assert counted.path_of_row(orders) is None
    assert sum(area.bytes for area in counted.root.children) == counted.account.bytes


def test_only_topics_have_bars_the_largest_a_full_one(counted: SpaceModel):
    shares = {row.key: counted.share_of_largest_topic(row) for row in counted.rows}
    assert counted.topics_by_size() == ["Orders", "Paid"]
    assert shares["Orders"] == 1.0
    assert 0 < shares["Paid"] < 1
    assert counted.share_of_largest_topic(counted.rows[-1]) is None


def test_a_topic_waits_for_the_account_once():
    model = SpaceModel(pending_topic="Orders")
    assert (model.take_pending_topic(), model.take_pending_topic()) == ("Orders", "")
    assert place_of_key("Orders") == Place("space", name="Orders")
    assert place_of_key(f"{REST_PREFIX}index") == Place("space")
