"""Units put together from pages in several places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from raw_units import raw_unit
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


def one_large(tmp_path: Path, body: bytes, gaps: dict[int, bytes], **fields: object) -> tuple[bytes, Path, Path]:
    """Write a store with an empty log, and an image: a unit at 8 MiB and the next one, with ``gaps`` in front of some
    pages. Returns the unit, the store and the image.
    """
    root, image, base = tmp_path / "store", tmp_path / "image", 8 << 20
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020d}").write_bytes(raw_unit(0).ljust(PAGE, b"\0"))
    unit = raw_unit(base, body=body, **fields)  # type: ignore[arg-type]
    log = unit + raw_unit(base + len(unit)) + bytes(100)
    pages = [gaps.get(start // PAGE, b"") + log[start : start + PAGE] for start in range(0, len(log), PAGE)]
    image.write_bytes(b"".join(pages) + bytes(PAGE))
    return unit, root, image


def foreign(kind: str, pages: int, rng: random.Random) -> bytes:
    size = pages * PAGE
    if kind == "another log":
        units = bytearray()
        while len(units) < size:
            units += raw_unit((1 << 40) + len(units), body=rng.randbytes(300))
        return bytes(units[:size])
    if kind == "text":
        return text(rng, size)
    return rng.randbytes(size) if kind == "random bytes" else bytes(size)


@pytest.mark.parametrize("kind", ["another log", "zeros", "text", "random bytes"])
@pytest.mark.parametrize("body", ["text", "random bytes"])
def test_a_large_message_in_many_pieces_is_put_together(tmp_path: Path, kind: str, body: str) -> None:
    """Messages of more than 64 KiB in three pieces were not put together: each combination of pages cost a CRC."""
    rng = random.Random(1)
    starts = range(5, 128, 16) if kind == body else sorted(rng.sample(range(3, 126), 7))
    gaps = {start: foreign(kind, 2 if kind == body else rng.randrange(1, 4), rng) for start in starts}
    data = foreign(body, 127, rng) + b"end"
    unit, root, image = one_large(tmp_path, data, gaps)
    rows = [row for row in salvage(root, [image]) if row.physical_offset == 8 << 20]
    assert [(row.verdict, row.data == unit, len(row.places)) for row in rows] == [("reassembled", True, len(gaps) + 1)]
    assert {"bodyCrc", "unitBehind"} <= {*rows[0].evidence}


def test_a_large_message_that_lacks_a_page_is_a_fragment(tmp_path: Path) -> None:
    rng = random.Random(2)
    _, root, image = one_large(tmp_path, rng.randbytes(300_000), {20: rng.randbytes(PAGE), 50: rng.randbytes(PAGE)})
    data = bytearray(image.read_bytes())
    data[40 * PAGE : 41 * PAGE] = rng.randbytes(PAGE)
    image.write_bytes(data)
    rows = [row for row in salvage(root, [image]) if row.physical_offset == 8 << 20]
    assert [row.verdict for row in rows] == ["head"]


def test_zeros_that_fit_twice_prove_nothing_but_give_the_same_bytes(tmp_path: Path) -> None:
    unit, root, image = one_large(tmp_path, bytes(200_000), {20: bytes(PAGE), 33: bytes(2 * PAGE)})
    rows = [row for row in salvage(root, [image]) if row.physical_offset == 8 << 20]
    assert [(row.verdict, row.data == unit) for row in rows] == [("reassembled", True)]
