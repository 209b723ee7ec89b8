"""From a key to its slot."""

from __future__ import annotations

from viewer.index.hash_strip import HashStrip, StripPart


def test_the_strip_shortens_the_key_before_anything_else(shown) -> None:
    strip = shown(HashStrip(), 500)
    strip.show_parts([StripPart("key text", "T#" + "k" * 500), StripPart("hash", "1,463,187,583", follows=True)])
    strip.grab()
    assert "1,463,187,583" in strip.accessibleDescription()
