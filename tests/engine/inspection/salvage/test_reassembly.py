"""Units put together from pages in several places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from salvage_rounds import FILE_BYTES, PAGE, WrittenStore, salvage, text, write_store


@pytest.fixture
def written(tmp_path: Path) -> WrittenStore:
    store = write_store(random.Random(3), tmp_path / "store", 3)
    store.files[1].unlink()
    return store


def middle(written: WrittenStore) -> bytes:
    return written.log[FILE_BYTES : 2 * FILE_BYTES]


def test_a_unit_across_two_extents_has_two_pieces(written: WrittenStore, tmp_path: Path) -> None:
    data, image = middle(written), tmp_path / "image"
    image.write_bytes(data[: 8 * PAGE] + text(random.Random(1), 3 * PAGE) + data[8 * PAGE :])
    cut = next(
        offset for offset in written.units if offset < FILE_BYTES + 8 * PAGE < offset + len(written.units[offset])
    )
    (row,) = [row for row in salvage(written.root, [image]) if row.physical_offset == cut]
    assert (row.verdict, row.data) == ("reassembled", written.units[cut])
    first, second = row.places
    assert (first.offset + first.size, second.offset) == (8 * PAGE, 11 * PAGE)
    assert {"bodyCrc", "unitBefore", "unitBehind", "queueEntry"} <= {*row.evidence}


def test_pieces_of_another_message_are_not_put_together(written: WrittenStore, tmp_path: Path) -> None:
    """The page with the end of a unit is not in the image: its head is a fragment."""
    data, image = middle(written), tmp_path / "image"
    image.write_bytes(data[: 8 * PAGE] + text(random.Random(1), PAGE) + data[9 * PAGE :])
    cut = next(
        offset for offset in written.units if offset < FILE_BYTES + 8 * PAGE < offset + len(written.units[offset])
    )
    (row,) = [row for row in salvage(written.root, [image]) if row.physical_offset == cut]
    assert row.verdict in ("lost", "head", "damaged")


def test_the_beginning_of_the_next_unit_says_where_the_page_is(tmp_path: Path) -> None:
    """A unit in four pieces was not put together if the next one was in pieces, too: only whole units named pages."""
    written = write_store(random.Random(5), tmp_path / "store", 3, largest=18_000)
    rng = random.Random(1)
    first, second = next(
        (offset, offset + len(unit))
        for offset, unit in written.units.items()
        if FILE_BYTES < offset < 2 * FILE_BYTES - 60_000
        and 3 * PAGE < len(unit) < 5 * PAGE
        and unit[8:12] != bytes(4)
        and (offset + len(unit)) % PAGE < PAGE - 400
        and len(written.units.get(offset + len(unit), b"")) > PAGE
    )
    pages = range(first // PAGE + 1, second // PAGE + 2)
    data = middle(written)
    image, position, pieces = tmp_path / "image", 0, []
    for page in pages[-4:]:
        border = page * PAGE - FILE_BYTES
        pieces += [data[position:border], text(rng, rng.choice((1, 2, 5)) * PAGE)]
        position = border
    image.write_bytes(b"".join([*pieces, data[position:]]))
    written.files[1].unlink()
    rows = {row.physical_offset: row for row in salvage(written.root, [image])}
    assert [rows[offset].verdict for offset in (first, second)] == ["reassembled", "reassembled"]


def test_another_log_with_units_at_the_same_offsets_hides_none(tmp_path: Path) -> None:
    """Its files begin at the same offsets: a unit was taken for known, for the other log has one."""
    stores = (write_store(random.Random(seed), tmp_path / str(seed), 3) for seed in range(20))
    written = next(store for store in stores if len(store.units[FILE_BYTES]) > PAGE)
    other = write_store(random.Random(99), tmp_path / "other", 3, host=2)
    data, beside = middle(written), middle(other)
    image = tmp_path / "image"
    image.write_bytes(data[:PAGE] + beside[:PAGE] + data[PAGE:] + beside)
    written.files[1].unlink()
    rows = [row for row in salvage(written.root, [image]) if row.physical_offset == FILE_BYTES]
    assert [row.data for row in rows if row.verdict == "reassembled"] == [written.units[FILE_BYTES]]
