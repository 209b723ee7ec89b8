"""``sql``: questions about a store in SQL."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.decoding import add_rules, rules_of
from engine.cli.options import add_command, add_store, common_options, open_named_store
from engine.cli.output import Column, Output, Progress
from engine.english import number_of
from engine.errors import UsageError
from engine.files.atomic_file import atomic_file, check_new_file
from engine.inspection.snapshot import StoreSnapshot
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.sql.store_queries import Answer

_RELATIONS = (
    Column("Relation", "relation"),
    Column("Column", "column"),
    Column("Type", "kind"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "sql",
        'sql ~/store "SELECT topic, count(*), sum(size) FROM units GROUP BY 1 ORDER BY 2 DESC"',
        "sql ~/store \"SELECT physicalOffset, keys FROM units WHERE list_contains(keys, 'O-1042')\" --json",
        'sql ~/store "SELECT * FROM units" --format parquet -o units.parquet',
        """sql ~/store "SELECT decoded->>'$.customer.id' AS id, count(*) FROM units GROUP BY 1" --decoded""",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    text = "the question, - to read it from standard input; without one the relations and their columns are listed"
    parser.add_argument("question", metavar="QUESTION", nargs="?", help=text)
    text = "write the rows as JSON lines, CSV or Parquet (default: a table)"
    parser.add_argument("--format", choices=("json", "csv", "parquet"), help=text)
    text = "write the rows into this new file (needed for parquet)"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--body", action="store_true", help="units also have the column body, as it is stored")
    text = "units also have the columns decoded, the body as JSON, and decodeError"
    parser.add_argument("--decoded", action="store_true", help=text)
    add_rules(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.sql.store_queries import StoreQueries

    if args.format == "parquet" and args.output is None:
        raise UsageError(sentence("Parquet needs a file: -o FILE"))
    if args.output is not None and (args.format is None or args.question is None):
        raise UsageError(sentence("-o FILE needs a question and --format json, csv or parquet"))
    question = sys.stdin.read() if args.question == "-" else args.question
    with open_named_store(args, out) as store:
        if question is None:
            return _list_relations(out)
        if args.output is not None:
            check_new_file(store.path, Path(args.output), overwrite=args.overwrite)
        with (
            Progress("sql", store.log.sequence.total_size, out.quiet) as progress,
            StoreQueries(
                store,
                with_bodies=args.body,
                decoding_rules=rules_of(args, store) if args.decoded else None,
                on_progress=progress.update,
            ) as queries,
        ):
            answer = queries.ask(question)
            rows = _write(args, out, answer)
        if args.format is None or args.output is not None:
            _print_end(store, out, answer, rows)
    return 0


def _list_relations(out: Output) -> int:
    from engine.sql.relations import RELATIONS, sql_type

    for name, relation in RELATIONS.items():
        for column, kind in relation.columns.items():
            out.record({"type": "sqlColumn", "relation": name, "column": column, "kind": sql_type(kind)}, _RELATIONS)
    return 0


def _write(args: argparse.Namespace, out: Output, answer: Answer) -> int:
    """Write the rows as the options say; return how many."""
    from engine.sql import answer_text

    if args.format is None:
        return _print_rows(out, answer)
    if args.output is None:
        writer = answer_text.write_json if args.format == "json" else answer_text.write_csv
        return writer(answer, sys.stdout)
    with atomic_file(Path(args.output)) as file:
        if args.format == "parquet":
            return answer_text.write_parquet(answer, file)
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = answer_text.write_json if args.format == "json" else answer_text.write_csv
        try:
            rows = writer(answer, text)
            text.flush()
        finally:
            text.detach()
        return rows


def _print_rows(out: Output, answer: Answer) -> int:
    import pyarrow as pa

    from engine.sql.answer_text import rows, unique_names

    names = unique_names(answer.schema.names)
    columns = tuple(
        Column(name, name, "number" if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type) else "text")
        for name, field in zip(names, answer.schema, strict=True)
    )
    count = 0
    for row in rows(answer):
        out.record({"type": "sqlRow", "row": row} if out.as_json else row, columns)
        count += 1
    return count


def _print_end(store: StoreSnapshot, out: Output, answer: Answer, rows: int) -> None:
    from engine.sql.answer_text import unique_names

    names = unique_names(answer.schema.names)
    kinds = [{"name": name, "kind": str(field.type)} for name, field in zip(names, answer.schema, strict=True)]
    is_complete = not store.unread and not store.reading.undecoded
    out.record({"type": "sqlAnswer", "columns": kinds, "rows": rows, "complete": is_complete})
    out.line(f"-- {number_of(rows, 'row', 'rows')}")
