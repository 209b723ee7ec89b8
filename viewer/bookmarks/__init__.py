"""Bookmarks view: the places of a store that the user marked, and the notes on it."""
