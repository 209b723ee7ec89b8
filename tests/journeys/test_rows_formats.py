"""Parts of a message and kinds of stores: flavours, decoded ids, bodies in any form, 64 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QLabel
from walker import Run, Walker

from engine.bench.data import sparse_store
from viewer.log.body_view import BodyView
from viewer.look.formats import number
from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey
LOG, QUEUE = "units.table", "queue.table"


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "flavour"),
    [
        ("batchcq-5.3.3", "batch queues"),
        ("lmq-5.3.3", "light queues"),
        ("multi-queue-ext-5.3.3", "ext queues"),
        ("propcrc-5.3.3", "property CRC"),
        ("ipv6-and-unicode-5.3.3", "IPv6 hosts"),
    ],
)
def test_the_flavour_of_a_store_is_shown(run: Run, walker: Walker, golden: object, name: str, flavour: str) -> None:
    async def walk() -> None:
        await walker.open(golden(name))  # type: ignore[operator]
        label = walker.find(QLabel, "status.format")
        await walker.until(lambda: bool(label.text()), "the store is surveyed")
        assert flavour in label.text().split(" · ")

    run(walk())


def test_one_row_for_each_unit_with_its_eight_columns(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        heads = walker.heads(LOG)
        for head in ("Physical offset", "Size", "Topic", "Queue", "Queue offset", "Stored", "Keys", "Tag"):
            assert head in heads, heads
        offsets, sizes = walker.values(LOG, "Physical offset"), walker.values(LOG, "Size")
        assert [offset + size for offset, size in zip(offsets, sizes, strict=True)][:-1] == offsets[1:], (
            "no unit is left out"
        )
        first = walker.row(LOG)
        assert first["Topic"] == "OrderPaid"
        assert first["Keys"]

    run(walk())


def test_ids_are_taken_apart(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 5)
        offset, fields = walker.value(LOG, "Physical offset"), walker.fields()
        message_id = walker.detail_index("offsetMsgId")
        model = walker.detail.model()
        inside = {
            str(model.index(n, 0, message_id).data()): str(model.index(n, 1, message_id).data())
            for n in range(model.rowCount(message_id))
        }
        assert inside == {"broker": fields["storeHost"], "Physical offset": number(offset)}
        unique = walker.detail_index("UNIQ_KEY")
        parts = [str(model.index(n, 0, unique).data()) for n in range(model.rowCount(unique))]
        assert parts == ["client", "made"]
        host, sample = (model.index(n, 1, unique).data() for n in range(2))
        assert fields["bornHost"].startswith(str(host))
        assert str(sample)[:10] == fields["bornTimestamp"][:10]
        spoken = [str(model.index(n, 0, unique).data(11)) for n in range(2)]
        assert "PID " in spoken[0], spoken
        assert "counter " in spoken[1], spoken

    run(walk())


def test_a_body_as_text_json_and_bytes_in_any_charset(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        tabs, body = walker.find(WordTabs, "unit.tabs"), walker.find(BodyView, "unit.body")
        shown = body.text
        tabs.choose("json")
        await walker.until(lambda: shown().startswith("{\n"), "the body is laid out")
        laid_out = shown()
        tabs.choose("text")
        await walker.rest()
        assert shown().split() != laid_out
        assert "".join(shown().split()) == "".join(laid_out.split())
        charset = walker.find(QComboBox, "unit.body.charset")
        assert {"UTF-8", "GB18030", "UTF-16-BE"} <= {charset.itemText(n) for n in range(charset.count())}
        plain = shown()
        charset.setCurrentText("UTF-16-BE")
        await walker.rest()
        assert shown() != plain
        charset.setCurrentText("UTF-8")
        tabs.choose("hex")
        await walker.rest()
        assert not charset.isEnabled()
        await walker.go("1395")
        tabs.choose("text")
        await walker.until(lambda: " → " in walker.texts(body), "it is unpacked")
        assert "zlib" in walker.texts(body) or "lz4" in walker.texts(body) or "zstd" in walker.texts(body)
        tabs.choose("bytes")

    run(walk())


@pytest.mark.full_form(keep=0)
def test_a_terabyte_opens_and_its_last_row_is_reached(run: Run, walker: Walker, tmp_path: Path) -> None:
    store = sparse_store(tmp_path, files=64, file_size=16 << 30)

    async def walk() -> None:
        await walker.open(store)
        assert walker.table(LOG).model().rowCount() > 0
        assert walker.value(LOG, "Physical offset") == 0
        await walker.act("go.last")
        last_offset = walker.value(LOG, "Physical offset")
        assert 63 * (16 << 30) < last_offset < 1 << 40
        assert walker.fields()["physicalOffset"] == number(last_offset)
        assert walker.hex.origin == last_offset
        await walker.go(f"log:{500 << 30}")
        assert walker.value(LOG, "Physical offset") >= 496 << 30
        await walker.act("go.first")
        assert walker.value(LOG, "Physical offset") == 0
        walker.window.show_view("queue")
        table = walker.table(QUEUE)
        await walker.until(lambda: table.total_rows() > 1 << 20, "a queue of millions of entries has its rows")
        walker.action("go.last").trigger()
        end = table.total_rows() - 1
        await walker.until(lambda: walker.values(QUEUE, "Queue offset")[-1:] == [end], "its last row is there")

    run(walk())
