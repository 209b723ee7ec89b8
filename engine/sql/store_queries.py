"""Runs questions in SQL over one store: only questions, and no other file of the machine is reached."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine.errors import StoreError, UsageError
from engine.extras import line_of
from engine.sentences import sentence
from engine.sql.decoded_units import DECODED_UNITS, decoded_unit_batches
from engine.sql.relations import RELATIONS, WITH_BODIES, Relation, RelationReader, as_dataset

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.decoding.rules import DecodingRule
    from engine.inspection.snapshot import StoreSnapshot
    from engine.sql.unit_relations import Progress

BATCH_ROWS = 1 << 16
"""Rows of a batch of the result."""
LONGEST_HINT = 200
"""Characters of a line behind the first one of an error of DuckDB; longer ones list what nobody can read at once."""
_AS_JSON = re.compile(r'\{"exception_type".*\}', re.DOTALL)
_KIND = re.compile(r"^(?:[A-Za-z]+ )+Error: ")
_EXPLAIN = "EXPLAIN "
MEMORY = "2GB"
"""What sorting and grouping hold in memory before they write to a temporary folder."""


class MissingPackages(StoreError):
    """DuckDB or pyarrow is not installed."""


class BadQuestion(UsageError):
    """DuckDB cannot answer a question. ``start`` and ``length`` are the characters that it complains about; None and 0
    if it names none.
    """

    def __init__(self, problem: str, start: int | None = None, length: int = 0) -> None:
        super().__init__(problem)
        self.start = start
        self.length = length


class StoreQueries:
    """Answers questions about a store. ``store`` stays the caller's; one question at a time.

    ``with_bodies`` gives ``units`` the column ``body``, ``decoding_rules`` also ``decoded`` and ``decodeError``.
    ``on_progress`` is told the bytes of the log that were read.
    """

    def __init__(
        self,
        store: StoreSnapshot,
        *,
        with_bodies: bool = False,
        decoding_rules: Sequence[DecodingRule] | None = None,
        on_progress: Progress = lambda _done: None,
    ) -> None:
        relations = WITH_BODIES if with_bodies else RELATIONS
        if decoding_rules is not None:
            relations = relations | {"units": Relation(DECODED_UNITS, decoded_unit_batches(decoding_rules))}
        duck = _duckdb()
        self._spill = tempfile.TemporaryDirectory(prefix="storescope-sql-", ignore_cleanup_errors=True)
        self._connection = duck.connect(
            ":memory:",
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "errors_as_json": "true",
                "memory_limit": MEMORY,
                "temp_directory": str(Path(self._spill.name) / "spill"),
            },
        )
        self._readers: dict[str, RelationReader] = {}
        turn = threading.Lock()
        for name, relation in relations.items():
            reader = RelationReader(store, relation, on_progress, turn)
            self._readers[name] = reader
            self._connection.register(name, as_dataset(reader, relation.columns))
        self._connection.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the relations, and remove what was written to the temporary folder."""
        self._connection.close()
        self._spill.cleanup()

    def interrupt(self) -> None:
        """Stop a question that runs in another thread; it ends with :class:`UsageError`."""
        self._connection.interrupt()

    def ask(self, text: str) -> Answer:
        """Begin to answer one SELECT (or DESCRIBE, SHOW, EXPLAIN, VALUES).

        Raises :class:`UsageError` for anything else, :class:`BadQuestion` for a mistake in the text, and
        :class:`StoreError` where the store cannot be read.
        """
        duck = _duckdb()
        try:
            statements = self._connection.extract_statements(text)
        except duck.Error as error:
            raise BadQuestion(_sentence_of(error), *_place_of(error, text)) from error
        if len(statements) != 1:
            raise UsageError(sentence("expected one question in SQL, found {n}", n=len(statements)))
        kind = statements[0].type
        if kind not in (duck.StatementType.SELECT, duck.StatementType.EXPLAIN):
            raise UsageError(
                sentence("expected a question (SELECT …), found {kind}: a store is only read", kind=kind.name)
            )
        try:
            reader = self._guarded(lambda: self._connection.sql(statements[0]).to_arrow_reader(BATCH_ROWS))
        except BadQuestion as error:
            error.start, error.length = self._misunderstood_word(text)
            raise
        return Answer(self, reader)

    def _misunderstood_word(self, text: str) -> tuple[int | None, int]:
        """Return the characters that DuckDB does not understand: only the plan of a question names them."""
        duck = _duckdb()
        prefix = "" if text.lstrip().upper().startswith(_EXPLAIN) else _EXPLAIN
        with contextlib.suppress(StoreError):
            try:
                self._guarded(lambda: self._connection.execute(prefix + text))
            except BadQuestion as error:
                if isinstance(error.__cause__, duck.Error):
                    return _place_of(error.__cause__, prefix + text, len(prefix))
        return None, 0

    def _guarded(self, step: Any) -> Any:
        """Run a step of DuckDB, and raise what ended it as an error of this program."""
        for reader in self._readers.values():
            reader.error = None
        try:
            return step()
        except (_duckdb().Error, OSError, ValueError) as error:
            for reader in self._readers.values():
                if reader.error is not None:
                    raise reader.error from error
            raise BadQuestion(_sentence_of(error)) from error


class Answer:
    """The rows of an answer: read once, in their order."""

    def __init__(self, queries: StoreQueries, reader: pa.RecordBatchReader) -> None:
        self._queries = queries
        self._reader = reader
        self.schema: pa.Schema = reader.schema

    def __iter__(self) -> Answer:
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next rows. Raises :class:`StoreError` where the store cannot be read."""
        batch = self._queries._guarded(lambda: next(self._reader, None))  # noqa: SLF001
        if batch is None:
            raise StopIteration
        return batch


def duckdb_words() -> tuple[list[str], list[str]]:
    """Return the names of DuckDB's functions, and its keywords. Raises :class:`MissingPackages`."""
    functions = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE regexp_matches(function_name, '^[a-z]')"
    keywords = "SELECT upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category != 'unreserved'"
    with _duckdb().connect(":memory:") as connection:
        rows = [connection.execute(text).fetchall() for text in (functions, keywords)]
    first, second = ([str(name) for (name,) in names if str(name).isidentifier()] for names in rows)
    return sorted(first), sorted(second)


def _duckdb() -> Any:
    try:
        import duckdb
        import pyarrow.dataset  # noqa: F401
    except ImportError as error:
        raise MissingPackages(
            sentence("SQL needs the package {name}: {command}", name=error.name or "duckdb", command=line_of("sql"))
        ) from error
    return duckdb


def _sentence_of(error: BaseException) -> str:
    """Return the first lines of an error of DuckDB, without the kind of error in front."""
    match = _AS_JSON.search(str(error))
    text = _KIND.sub("", str(error))
    if match is not None:
        with contextlib.suppress(ValueError):
            text = json.loads(match[0])["exception_message"]
    first, *further = text.partition("\tCandidate functions:")[0].split("\n\n", 1)[0].splitlines() or [""]
    return " ".join(" ".join([first, *(line for line in further if len(line) <= LONGEST_HINT)]).split())


def _place_of(error: BaseException, text: str, shift: int = 0) -> tuple[int | None, int]:
    """Return the characters of ``text`` that an error of DuckDB names, from character ``shift`` on: their begin and
    number.
    """
    match = _AS_JSON.search(str(error))
    try:
        fields = json.loads(match[0]) if match is not None else {}
        start, length = json.loads(fields.get("location") or f"[{int(fields['position'])}, 0]")
    except (KeyError, ValueError):
        return None, 0
    encoded = text.encode()
    begin, end = len(encoded[:start].decode(errors="ignore")), len(encoded[: start + length].decode(errors="ignore"))
    return max(begin - shift, 0), end - begin
