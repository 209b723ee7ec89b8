"""A real store, asked in SQL, beside the same store as other commands answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.cli.main import main
from engine.inspection.snapshot import open_store
from engine.sql.answer_text import rows
from engine.sql.store_queries import StoreQueries

Rows = list[dict[str, Any]]


@pytest.fixture
def ask(golden) -> Callable[..., Rows]:
    """Ask a golden store a question; the rows as JSON has them."""

    def answer(question: str, store: str = "broker-orders-5.5.1", *, with_bodies: bool = False) -> Rows:
        with open_store(golden(store)) as opened, StoreQueries(opened, with_bodies=with_bodies) as queries:
            return list(rows(queries.ask(question)))

    return answer


@pytest.fixture
def records(golden, capsys) -> Callable[..., Rows]:
    """What another command answers about a golden store, without the records of another type."""

    def answer(kind: str, command: str, *words: str, store: str = "broker-orders-5.5.1") -> Rows:
        main([command, str(golden(store)), *words, "--json", "--quiet"])
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [line for line in lines if line["type"] == kind]

    return answer
