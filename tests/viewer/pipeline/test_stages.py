"""Tasks of a stage as squares."""

from __future__ import annotations

from viewer.pipeline.request import JobRequest
from viewer.pipeline.stages import COLUMNS, ROWS, squares
from viewer.pipeline.state import JobState


def job(job_request: JobRequest | None = None, number: int = 1) -> JobState:
    return JobState(number, job_request or JobRequest("stats", ("/data/store",)), 1_795_248_000.0, 100.0)


def test_squares_represent_any_number_of_tasks() -> None:
    card = job().cards[0]
    card.done, card.tasks, card.running, card.retried = 58, 96, 8, 2
    states, each = squares(card)
    assert (len(states), each) == (96, 1)
    assert [states.count(name) for name in ("done", "again", "running", "waits")] == [56, 2, 8, 30]
    card.done, card.tasks, card.running, card.retried = 19_999, 20_000, 1, 0
    states, each = squares(card)
    assert len(states) <= COLUMNS * ROWS < 20_000 / (each - 1)
    assert states[-1] == "running"
    card.done = 20_000
    assert set(squares(card)[0]) == {"done"}
    card.done = card.tasks = card.running = 0
    assert squares(card) == ([], 1)
