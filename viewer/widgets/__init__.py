"""Widgets of our own: tables, strips, hex view and the small pieces. They know no store."""
