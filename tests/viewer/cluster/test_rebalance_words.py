"""Texts of steps and impacts: durations between two bounds, "…" for unknown values, and the whole as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import sample_clusters as made

import engine.client
from viewer.cluster.cluster_model import TimeMark
from viewer.cluster.deliveries import Delivery, RebalanceEvent
from viewer.cluster.rebalance import Burst, DurationBounds, Timeline, timeline
from viewer.cluster.rebalance_words import (
    REASONS,
    duration_range,
    end_of_step_ms,
    impacts,
    list_rows,
    mark_words,
    move_rows,
    rebalance_markdown,
    step_rows,
    step_words,
)

MODEL = made.looked_at(*made.rebalanced())
LINE = timeline("billing", tuple(MODEL.moments["billing"]))


def test_steps_name_joining_and_leaving_clients():
    assert [step_words(MODEL, step) for step in LINE.steps] == [
        "at the first reading: C2 C3 C4",
        "C3 left",
        "C3 joins, C3 idle",
    ]
    moved = replace(LINE.steps[1], clients=LINE.steps[1].clients_before)
    assert step_words(MODEL, moved) == "queues move"
    removed = made.looked_at(*made.rebalanced())
    removed.killed.add(made.C2.client_id)
    assert step_words(removed, LINE.steps[1]) == "C3 killed"
    assert mark_words(removed, removed.marks[0]) == "C3 killed"
    rows = step_rows(MODEL, LINE)
    assert [(row.number, row.moved, row.pause, row.idle) for row in rows] == [
        (1, 6, "", 0),
        (2, 2, "2.0–4.0 s", 0),
        (3, 0, "", 1),
    ]
    assert [mark_words(MODEL, mark) for mark in MODEL.marks] == ["C3 left", "C3 joins"]
    assert mark_words(MODEL, TimeMark(0, "registers", "broker-b")) == "broker-b registers"


def test_impacts_have_a_figure_each():
    pause, repeated, burst, idle = impacts(LINE.steps[1], 1.0)
    assert (pause.figure, pause.note, pause.kind) == ("2.0–4.0 s", "broker-a q2 had no owner · 1 more queue", "warn")
    assert (repeated.figure, repeated.kind) == ("…", "chat")
    assert burst.kind == "ok"
    assert (idle.figure, idle.note, idle.kind) == ("0 → 0", "2 consumers for 6 queues", "ok")
    none = impacts(LINE.steps[2], 1.0)
    assert (none[0].figure, none[0].kind) == ("0", "ok")
    assert (none[3].figure, none[3].kind) == ("0 → 1", "warn")
    bad = replace(
        LINE.steps[1],
        doubles={made.A[0]: DurationBounds(0, 1_000)},
        went_back=40,
        bursts={made.A[1]: Burst(100.0, 310.0)},
    )
    _, repeated, burst, _ = impacts(bad, 1.0)
    assert (repeated.figure, repeated.kind) == ("≥ 40", "warn")
    assert "broker-a q0 had two owners for 0.0–1.0 s · offsets fell by 40" in repeated.note
    assert (burst.figure, burst.note) == ("× 3.1", "broker-a q1: 310 /s after 100 /s")
    assert duration_range(DurationBounds(500, 1_500)) == "0.5–1.5 s"


def test_each_queue_has_its_old_and_new_owner():
    rows = move_rows(MODEL, LINE.steps[1])
    assert [(row.owners_before, row.owners_after, row.change) for row in rows] == [
        ("C2", "C2", "unchanged"),
        ("C2", "C2", "unchanged"),
        ("C3", "C2", "moved"),
        ("C3", "C2", "moved"),
        ("C4", "C4", "unchanged"),
        ("C4", "C4", "unchanged"),
    ]
    assert {row.change for row in move_rows(MODEL, LINE.steps[0])} == {"taken"}
    removed = replace(LINE.steps[1], owners_after={made.A[0]: ()}, owners_before={made.A[0]: ("x",)})
    assert move_rows(MODEL, removed)[0].change == "no owner has it"


def test_markdown_has_every_step_with_its_impact():
    text = rebalance_markdown(MODEL, LINE)
    assert text.startswith("# Rebalance billing\n")
    assert "| C3 left | 2 | 2.0–4.0 s |" in text
    assert "- Delivered twice: …, the number is unknown: no admin request shows it" in text
    assert "| broker-a q2 | C3 | C2 | moved |" in text
    assert rebalance_markdown(MODEL, Timeline()) == ""


def test_impacts_are_counted_with_our_own_consumers():
    model = made.looked_at(*made.rebalanced())
    step = LINE.steps[1]
    begin = step.begin + 400
    queue = made.A[2]

    def deliveries_of(begin_ms: int, end_ms: int, interval_ms: int, client: str, offset: int) -> list[Delivery]:
        return [
            Delivery(position, client, "billing", queue, offset + n)
            for n, position in enumerate(range(begin_ms, end_ms, interval_ms))
        ]

    c2, c1 = made.C2.client_id, made.C1.client_id
    model.deliveries.add(deliveries_of(begin - 14_000, begin, 100, c2, 0))
    model.deliveries.add(
        deliveries_of(begin + 612, begin + 8_000, 30, c1, 130),
        [RebalanceEvent(begin + 500, c1, "billing", "OrderPaid", (c1,), made.OWNS[made.C1], (queue,), (), "")],
    )
    end_ms = end_of_step_ms(model, LINE, step)
    assert end_ms == LINE.steps[2].begin
    pause, repeated, burst, idle = impacts(step, 1.0, model.deliveries, "billing", end_ms)
    assert (pause.figure, pause.kind) == ("712 ms", "warn")
    assert (repeated.figure, repeated.kind) == ("10", "warn")
    assert repeated.note.startswith("of 251 delivered since")
    assert burst.figure.startswith("× 3.")
    assert idle.figure == "0 → 0"
    (row,) = list_rows(model, LINE, step)
    assert (row.client, row.ids, row.change) == ("C2", "C2", "+broker-a q2")
    assert "- Pause: 712 ms" in rebalance_markdown(model, LINE)
    empty = impacts(step, 1.0, model.deliveries, "billing", step.begin)
    assert empty[1].figure == "0"


def test_a_lower_rate_afterwards_is_no_burst():
    """On a busy machine the figure was "× 0.7"."""
    model = made.looked_at(*made.rebalanced())
    step = LINE.steps[1]
    times = [*range(step.begin - 14_000, step.begin, 30), *range(step.end, step.end + 8_000, 100)]
    model.deliveries.add([Delivery(time, "a", "billing", made.A[2], n) for n, time in enumerate(times)])
    burst = impacts(step, 1.0, model.deliveries, "billing", end_of_step_ms(model, LINE, step))[2]
    assert (burst.figure, burst.note, burst.kind) == ("× 1", "no queue became faster afterwards", "ok")


def test_a_queue_without_a_new_owner_is_paused_to_the_end():
    """Two clients that disagreed left a queue without owner. Its last finished pause was reported as its pause."""
    model = made.looked_at(*made.rebalanced()[:19])
    line = timeline("billing", tuple(model.moments["billing"]))
    step = line.steps[-1]
    assert step.owners_after[made.A[2]] == ()
    times = {made.A[0]: range(step.begin - 14_000, line.end, 90), made.A[2]: range(step.begin - 14_000, step.begin, 70)}
    model.deliveries.add(
        [Delivery(current, "a", "billing", queue, n) for queue, some in times.items() for n, current in enumerate(some)]
    )
    pause = impacts(step, 1.0, model.deliveries, "billing", end_of_step_ms(model, line, step))[0]
    assert (pause.figure, pause.kind) == (f"≥ {line.end - times[made.A[2]][-1]:,} ms", "warn")
    assert pause.note == "broker-a q2 has no owner; the others at most 90 ms"
    nobody_knows = replace(step, is_complete=False)
    assert (
        impacts(nobody_knows, 1.0, model.deliveries, "billing", end_of_step_ms(model, line, step))[0].figure == "90 ms"
    )


def test_every_reason_of_a_client_has_a_text():
    folder = Path(engine.client.__file__).parent
    texts = {"start", "interval", "asked for"}
    for module in folder.glob("*.py"):
        texts.update(re.findall(r'rebalance_soon\("([^"]+)"\)', module.read_text("utf-8")))
    assert texts == set(REASONS)
