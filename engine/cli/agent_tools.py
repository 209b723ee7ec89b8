"""The tools that ``storescope mcp`` offers to agents: each is a command that only reads, with typed parameters.

Knows nothing of the protocol. A call builds a command line, runs the command, and gathers its records: at most so many
rows and bytes. Options that write are not in the table, and the command line is built so that no value can become one.
"""

from __future__ import annotations

import argparse
import io
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.cli.main import build_parser, run_parsed
from engine.cli.output import CommandStopped, Output, stopped_by
from engine.errors import UsageError
from engine.mapped.reading import gather_unread
from engine.releases import NAMES
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.rules.masking import Masking

DEFAULT_ROWS: Final = 50
MAX_ROWS: Final = 500
MAX_BYTES: Final = 64 * 1024
"""Maximum length of the records of one answer, as JSON."""
MAX_TEXT_CHARS: Final = 4_000
"""Longest text in a record: a body may be 4 MiB."""
MAX_FIELDS: Final = 64
"""Fields of a record that are never cut: a unit has forty."""
MAX_GATHERED: Final = 50_000
"""Maximum number of records of one command that are read before it is stopped."""
MAX_SECONDS: Final = 600

Schema = dict[str, Any]

_OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1}
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 4_000}
_FLAG: Schema = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool. ``option`` is the command's option for it, "" for an argument without a name."""

    name: str
    schema: Schema
    description: str
    option: str = ""
    is_required: bool = False


def _argument(name: str, schema: Schema, description: str) -> Parameter:
    return Parameter(name, schema, description, is_required=True)


_RELEASE = Parameter(
    "release",
    {"type": "string", "enum": list(NAMES)},
    "the RocketMQ release whose start is judged (default: the one that probably wrote the store)",
    "--release",
)
_TOPIC = Parameter("topic", _TEXT, "only messages of this topic", "--topic")
_ID = _argument("id", _TEXT, "offset message id, unique key, key, physical offset in the log, or TOPIC/QUEUE/OFFSET")
_DECODED = Parameter("decoded", _FLAG, "add each body as its decoder reads it", "--decoded")


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool: the command that answers it, the words that are always given, and its parameters."""

    name: str
    command: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    words: tuple[str, ...] = ()
    closing_type: str = ""
    """Type of the record that ends the answer and sums it up; it is given apart, and never left out."""
    limit_option: str = ""
    """The command's option for the number of its rows: a log of a TiB is read only as far as rows are wanted."""

    def input_schema(self) -> Schema:
        """Return the JSON schema of the parameters, with those of every tool."""
        properties = {p.name: {**p.schema, "description": p.description} for p in (*self.parameters, *_OF_EVERY_TOOL)}
        return {
            "type": "object",
            "properties": properties,
            "required": [parameter.name for parameter in self.parameters if parameter.is_required],
            "additionalProperties": False,
        }

    def command_line(self, store: str, values: Mapping[str, Any]) -> list[str]:
        """Return the command line. A value stands behind ``--option=`` or behind ``--``: it cannot be an option."""
        options, arguments = list(self.words), [store]
        for parameter in self.parameters:
            value = values.get(parameter.name)
            if value is None or value is False:
                continue
            if value is True:
                options.append(parameter.option)
            elif parameter.option:
                options.append(f"{parameter.option}={value}")
            else:
                arguments.append(str(value))
        if self.limit_option:
            options.append(f"{self.limit_option}={_first_row(values) + _max_rows(values) + 1}")
        return [self.command, *options, "--", *arguments]


_OF_EVERY_TOOL = (
    Parameter(
        "rows",
        {"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
        f"maximum number of rows in the answer (default: {DEFAULT_ROWS})",
    ),
    Parameter("skip", _OFFSET, "leave out so many rows in front, to go on where an answer was partial"),
)


def _max_rows(values: Mapping[str, Any]) -> int:
    return int(values.get("rows", DEFAULT_ROWS))


def _first_row(values: Mapping[str, Any]) -> int:
    return int(values.get("skip", 0))


TOOLS: Final = (
    AgentTool(
        "store_info",
        "info",
        "What the store contains: range of the log, topics with their queues, index files, checkpoint, whether a "
        "broker holds it and whether it was closed cleanly.",
        (_RELEASE,),
    ),
    AgentTool(
        "check",
        "check",
        "Check the whole store. Start here. The summary has the incident: what happened, what is lost, what the next "
        "start of each release would lose, and the first safe steps in order. Each row is a finding with its file and "
        "offset, explanation, next step and command.",
        (
            Parameter("only", _TEXT, "apply only these rules (separated by commas), such as CL01,CQ04", "--only"),
            _RELEASE,
        ),
        closing_type="summary",
    ),
    AgentTool(
        "where",
        "where",
        "Where a message is, or why it is missing or not consumed: a verdict with its evidence (file and offset of "
        "each fact) and the next step.",
        (_ID, _TOPIC, Parameter("group", _TEXT, "the consumer group that did not get it", "--group"), _RELEASE),
    ),
    AgentTool(
        "conversation",
        "conversation",
        "All units of one message, transaction or key in order: sent, delayed, retried, delivered, given up.",
        (_ID, _TOPIC, _RELEASE),
    ),
    AgentTool(
        "message",
        "message",
        "One message with its properties, place and the state of its bytes.",
        (_ID, _DECODED),
    ),
    AgentTool(
        "units",
        "units",
        "Units of the commit log in order: messages, blanks and damage, each with its physical offset and file.",
        (
            Parameter("from_offset", _OFFSET, "begin at this physical offset, in bytes", "--from"),
            Parameter("to_offset", _OFFSET, "end before this physical offset, in bytes", "--to"),
            _TOPIC,
            Parameter("queue", _NUMBER, "only messages of this queue id", "--queue"),
            Parameter("filter", _TEXT, "a filter such as: size > 4KiB and topic = 'Orders'", "--where"),
            _DECODED,
        ),
        closing_type="end",
        limit_option="--limit",
    ),
    AgentTool(
        "queue_entries",
        "queue",
        "Entries of one consume queue, each with the verdict of comparing it with its message in the log.",
        (
            _argument("topic", _TEXT, "the topic"),
            _argument("queue", _NUMBER, "the queue id"),
            Parameter("from_offset", _OFFSET, "begin at this queue offset", "--from"),
            Parameter("to_offset", _OFFSET, "end before this queue offset", "--to"),
        ),
        ("--resolve",),
    ),
    AgentTool(
        "trace_key",
        "trace",
        "Follow a key or unique key through the index files step by step, as a broker's query does.",
        (
            _argument("topic", _TEXT, "the topic"),
            _argument("key", _TEXT, "the key or unique key"),
            Parameter("begin", _OFFSET, "earliest store time, ms since 1970", "--begin"),
            Parameter("end", _OFFSET, "latest store time, ms since 1970", "--end"),
        ),
        closing_type="traceEnd",
    ),
    AgentTool(
        "groups",
        "groups",
        "Progress of each consumer group and queue: offset, lag, oldest unread message, and what is wrong with it.",
        (_RELEASE,),
    ),
    AgentTool(
        "waiting",
        "waiting",
        "Messages that wait (delayed, timed, half, popped, to be retried), their due times, and what stands still.",
        (
            Parameter(
                "kind", {"type": "string", "enum": ["delay", "timer", "half", "pop", "retry"]}, "only these", "--kind"
            ),
            _TOPIC,
            Parameter("group", _TEXT, "only of this consumer group, or of this producer group's halves", "--group"),
        ),
        closing_type="summary",
    ),
    AgentTool(
        "timeline",
        "timeline",
        "What happened to the store and when: crashes, starts, stalls, clock steps, duplicate sends, retry storms.",
        (
            Parameter("kinds", _TEXT, "only these kinds of events (with commas), such as crash,start", "--kind"),
            Parameter("begin", _OFFSET, "only events from this time on, ms since 1970", "--begin"),
            Parameter("end", _OFFSET, "only events before this time, ms since 1970", "--end"),
        ),
        closing_type="summary",
    ),
    AgentTool(
        "configuration",
        "config",
        "The tables in config/: topics, groups, offsets, delay levels, filters; whether a broker reads them.",
        (_RELEASE,),
    ),
    AgentTool(
        "recovery_plan",
        "recover",
        "What the next start of a broker would keep, cut, dispatch again and lose, and whether it starts at all. "
        "Changes nothing.",
        (_RELEASE,),
        ("--plan",),
    ),
    AgentTool(
        "repair_plan",
        "repair",
        "Every change that would mend the store, with what it gains and costs. Changes nothing.",
        (Parameter("finding", _TEXT, "only what mends this finding of check, such as CQ04", "--finding"), _RELEASE),
        ("--plan",),
    ),
    AgentTool(
        "sql",
        "sql",
        "Answer one SELECT (DuckDB) over units, queue_entries, index_entries, findings, groups, topics. Without a "
        "question the relations and their columns. Select the physical offset to have the place of a message.",
        (Parameter("question", _TEXT, "the SELECT"),),
        closing_type="sqlAnswer",
    ),
)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}


@dataclass(slots=True)
class Answer:
    """What a call gathered. ``partial`` is empty if nothing is left out, else it says what is."""

    records: list[dict[str, Any]] = field(default_factory=list)
    closing: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    exit_code: int = 0

    def fields(self) -> dict[str, Any]:
        """Return the answer as the protocol carries it."""
        return {
            "rows": self.records,
            "summary": self.closing,
            "partial": bool(self.partial),
            "leftOut": self.partial,
            "notes": self.notes,
            "exitCode": self.exit_code,
        }


class StoreTools:
    """Answers calls about one store, one after the other."""

    def __init__(self, store: str, config_words: tuple[str, ...] = (), mask: Masking | None = None) -> None:
        self._store, self._config_words, self._mask = store, config_words, mask
        self._lock = threading.Lock()

    def tools(self) -> list[AgentTool]:
        """Return the tools; with masking only those whose commands can hide what was asked to be hidden."""
        if self._mask is None:
            return list(TOOLS)
        return [tool for tool in TOOLS if _can_mask(tool.command)]

    def call(self, name: str, values: Mapping[str, Any], stop: threading.Event | None = None) -> Answer:
        """Answer one call. Raises :class:`UsageError` and what the command raises; ``stop`` ends it early."""
        tool = BY_NAME.get(name)
        if tool is None or tool not in self.tools():
            raise UsageError(sentence("there is no tool {name}", name=name))
        line = tool.command_line(self._store, values)
        line[1:1] = self._config_words
        with self._lock:
            return self._run(tool, line, values, _Deadline(stop))

    def _run(self, tool: AgentTool, line: list[str], values: Mapping[str, Any], deadline: _Deadline) -> Answer:
        args = build_parser(tool.command).parse_args(line)
        args.arguments = line
        with gather_unread() as unread, stopped_by(deadline):
            out = _GatheringOutput(tool, values, deadline, self._mask, unread)
            try:
                out.answer.exit_code = run_parsed(args, out, unread)
            except _AnswerIsFull as reason:
                out.answer.partial.append(str(reason))
            except CommandStopped:
                out.answer.partial.append(f"the call was ended after {deadline.seconds():.0f} s; narrow the question")
            if unread:
                out.answer.notes.append(
                    "parts of the store could not be read (rows of type unreadable): do not conclude "
                    "that what they would have held is absent"
                )
        return out.finish()


class _Deadline:
    """A flag that is set when the caller stops the call, or after :data:`MAX_SECONDS`."""

    def __init__(self, stop: threading.Event | None) -> None:
        self._stop, self._begun = stop, time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def is_set(self) -> bool:
        return (self._stop is not None and self._stop.is_set()) or self.seconds() > MAX_SECONDS


class _AnswerIsFull(Exception):
    """The command has given more records than an answer may be made from."""


class _GatheringOutput(Output):
    """An output that keeps records in place of printing them."""

    def __init__(
        self, tool: AgentTool, values: Mapping[str, Any], deadline: _Deadline, mask: Masking | None, unread: Any
    ) -> None:
        super().__init__(as_json=True, quiet=True, stream=_LineStream(self._take), mask=mask, unread=unread)
        self.answer = Answer()
        self._tool, self._deadline = tool, deadline
        self._room = _max_rows(values)
        self._skip = self._first = _first_row(values)
        self._bytes = self._count = 0

    def _take(self, line: str) -> None:
        if self._deadline.is_set():
            raise CommandStopped
        record = json.loads(line)
        kind = record.get("type")
        if kind == self._tool.closing_type:
            self.answer.closing = self._fit(record)
            return
        self._count += 1
        if self._skip > 0:
            self._skip -= 1
        elif self._room > 0 and self._bytes <= MAX_BYTES:
            record = self._fit(record)
            self._bytes += _json_bytes(record)
            if self._bytes > MAX_BYTES and self.answer.records:
                return
            self._room -= 1
            self.answer.records.append(record)
        elif self._count > MAX_GATHERED:
            raise _AnswerIsFull(f"the command was stopped after {MAX_GATHERED:,} rows; narrow the question")

    def _fit(self, record: Any) -> Any:
        """Return the record with so many items of its lists and tables that it fits, and note what was cut."""
        for max_items in (1_000, 200, 50, 10, 2):
            fitting, cuts = _cut(record, max_items)
            if _json_bytes(fitting) <= MAX_BYTES:
                break
        self.answer.partial += [cut for cut in sorted(cuts) if cut not in self.answer.partial]
        return fitting

    def say(self, text: str) -> None:
        """Keep the remark for the answer."""
        self.answer.notes.append(text)

    def finish(self) -> Answer:
        """Return the answer, with what it leaves out."""
        reached = self._first + len(self.answer.records)
        if self._count > reached:
            why = f"bytes (at most {MAX_BYTES:,})" if self._bytes > MAX_BYTES else "rows"
            self.answer.partial.append(
                f"further rows are left out for {why}: ask again with skip {reached}, or narrow the question"
            )
        return self.answer


class _LineStream(io.StringIO):
    """A text stream that hands on each line, and holds none."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take, self._held = take, ""

    def write(self, text: str) -> int:
        *lines, self._held = (self._held + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)


def _json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _cut(value: Any, max_items: int) -> tuple[Any, set[str]]:
    """Return ``value`` with long texts, lists and tables cut, and sentences about what was cut."""
    cuts: set[str] = set()
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return value[:MAX_TEXT_CHARS] + "…", {f"texts of more than {MAX_TEXT_CHARS:,} characters are cut"}
    if isinstance(value, list):
        if len(value) > max_items:
            cuts.add(f"lists of more than {max_items:,} items are cut")
        parts = [_cut(item, max_items) for item in value[:max_items]]
        return [part for part, _ in parts], cuts.union(*(below for _, below in parts))
    if isinstance(value, dict):
        names = list(value)
        if len(names) > max(max_items, MAX_FIELDS):
            names = names[: max(max_items, MAX_FIELDS)]
            cuts.add(f"tables of more than {len(names):,} rows are cut")
        items = {name: _cut(value[name], max_items) for name in names}
        return {name: part for name, (part, _) in items.items()}, cuts.union(*(below for _, below in items.values()))
    return value, cuts


def _can_mask(command: str) -> bool:
    actions = build_parser(command)._actions  # noqa: SLF001 - argparse offers no other way to list options
    parsers = next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return any("--mask" in action.option_strings for action in parsers[command]._actions)  # noqa: SLF001
