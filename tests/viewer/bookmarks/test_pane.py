"""The bookmarks of a store: one row each, the note below, and removal with an undo."""

from __future__ import annotations

from handmade_stores import HandmadeStore
from panes import on_store

from viewer.bookmarks.pane import BookmarksPane
from viewer.runtime import places
from viewer.runtime.bookmarks import Bookmark, bookmarks_of
from viewer.runtime.places import Place


def test_a_bookmark_is_listed_chosen_and_removed(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for _ in range(4):
        store.put()

    async def drive(pane, session) -> None:
        bookmarks = bookmarks_of(session)
        for number in (1, 2):
            place = places.log(store.units[number].offset)
            bookmarks.put(Bookmark(places.text_of(place), f"unit {number}", "warn", f"note {number}"))
        assert [row.name for row in pane.table.source.rows] == ["unit 1", "unit 2"]
        pane.show_place(Place("bookmarks", name="unit 2"))
        assert pane._note.text() == "note 2"
        assert set(pane.commands()) >= {"bookmark.edit", "bookmark.remove"}
        pane.remove()
        assert [row.name for row in pane.table.source.rows] == ["unit 1"]
        assert pane.status() == "1 bookmark"
        pane.notes.setPlainText("seen twice")
        assert bookmarks.notes == "seen twice"

    on_store(qapp, BookmarksPane, store.write(tmp_path / "s"), drive)
