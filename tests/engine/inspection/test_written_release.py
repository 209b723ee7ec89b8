"""The release that wrote a store is derived from traces that only one release leaves."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore, healthy

from engine.inspection import open_store, written_release
from engine.inspection.findings import check
from engine.inspection.written_release import guess, require_release


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "release"),
    [("clean-5.3.3", "5.3"), ("clean-4.9.8", "4.9"), ("broker-orders", "5.3"), ("broker-orders-4.9.7", "4.9")],
)
def test_stores_of_both_releases_are_distinguished(golden, name, release):
    with open_store(golden(name)) as store:
        actual_guess = guess(store)
    assert actual_guess is not None
    assert actual_guess[0] == release
    assert actual_guess[1], "what speaks for it is said"


def test_no_release_is_guessed_without_traces(tmp_path):
    with open_store(healthy().write(tmp_path / "store", checkpoint=False)) as store:
        assert guess(store) is None


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("clean-4.9.8", "4.9"),
        ("clean-5.3.3", "5.3"),
        ("crash-5.4.0", "5.4"),
        ("broker-transactions-5.4.0", "5.4"),
        ("clean-5.5.1", "5.5"),
        ("broker-tags-5.5.1", "5.5"),
    ],
)
def test_the_release_of_a_real_store_is_recognised(golden, name, release):
    with open_store(golden(name)) as store:
        assert require_release(store) == release


@pytest.mark.parametrize(("stop", "release"), [(20, "5.3"), (60, "5.4")])
def test_a_store_continued_by_an_older_release_belongs_to_it(tmp_path, stop, release):
    """The older release keeps the traces of the newer one. Only the newest units show which release wrote them."""
    handmade_store = HandmadeStore()
    for number in range(60):
        handmade_store.tag_entries = number < stop
        handmade_store.put(tags="t")
    handmade_store.write(tmp_path / "store")
    (tmp_path / "store" / "rocksdbstore").mkdir()
    with open_store(tmp_path / "store") as store:
        assert require_release(store) == release


def test_the_release_is_guessed_once_until_the_store_is_refreshed(tmp_path, monkeypatch):
    """A check asked for the release 15 times, and each time looked at a dozen files again. Most of the time of a check
    of a small store went there.
    """
    guesses = []
    guess_release = written_release.written_release.guess
    monkeypatch.setattr(written_release.written_release, "guess", lambda *of: guesses.append(1) or guess_release(*of))
    with open_store(healthy().write(tmp_path / "store")) as store:
        list(check(store))
        assert len(guesses) == 1
        (tmp_path / "store" / "checkpoint").unlink()
        store.refresh()
        assert guess(store) is None
    assert len(guesses) == 2
