"""Tables of the view: a row for each exchange or frame, for each header field, for each filter entry. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from engine.remoting.codes import SHORT_NAMES, ResponseCode, answer_name, request_name
from engine.remoting.exchanges import SENDS, SHORT_FIELD_SENDS, request_record
from engine.remoting.frame import Command, release_of
from engine.remoting.frame_parts import EXTRA
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number
from viewer.requests.fields import term_of
from viewer.requests.request_log import (
    ANSWER,
    REQUEST,
    Frame,
    OrphanResponse,
    RequestLog,
    ShownRow,
    frame_record,
    is_trouble,
)
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    gutter,
    number_column,
    text_column,
    time_column,
    topic_column,
)

FROM_CLIENT, FROM_SERVER = "→", "←"
INDENT = "   "


def entry_place(row: ShownRow) -> Place | None:
    """Return the queue entry that a send wrote or a pull asked for; None if the request names none."""
    if row.exchange.broken or not row.topic or row.queue_id is None or row.offset is None:
        return None
    if row.code not in SENDS and row.exchange.answer_code != ResponseCode.SUCCESS:
        return None
    return places.queue(row.topic, row.queue_id, row.offset)


def unit_place(row: ShownRow) -> Place | None:
    """Return the unit that a send wrote."""
    offset = row.exchange.written_at
    return None if offset is None else places.log(offset)


def answer_chip(row: ShownRow) -> Chip:
    """Return the response as mark and word."""
    exchange = row.exchange
    if exchange.broken:
        return Chip("error", tr("no frame"))
    code = exchange.answer_code
    if code is None:
        if exchange.one_way:
            return Chip("chat", tr("one-way"))
        if exchange.held:
            return Chip("live", tr("held by the broker"))
        return Chip("chat", tr("waits") if exchange.waits else tr("no answer"))
    if code == ResponseCode.SUCCESS:
        return Chip("ok", answer_name(code))
    return Chip("warn" if is_trouble(exchange) else "chat", answer_name(code))


_TONES = {"ok": "text", "chat": "text3", "live": "live", "warn": "warn", "error": "error"}


def _answer_text(row: ShownRow) -> str:
    """Return the response in words; success has a tick and no colour."""
    chip = answer_chip(row)
    return f"✓ {chip.word}" if chip.kind == "ok" else chip.word


def ms_text(row: ShownRow) -> str:
    """Return the response time; for a pull that was held, say so."""
    ms = row.ms
    if ms is None:
        return ""
    text = f"{ms:,.2f}" if ms < 10 else f"{ms:,.1f}" if ms < 100 else f"{ms:,.0f}"
    return tr("held {ms}", ms=text) if row.exchange.held else text


def _look(row: ShownRow) -> RowAppearance | None:
    exchange = row.exchange
    if exchange.broken:
        return RowAppearance("error", words=tr("No frame: {reason}", reason=engine_words(exchange.request.reason)))
    return RowAppearance("warn") if is_trouble(exchange) else None


EXCHANGES = RecordKind(
    "request",
    (
        gutter(),
        time_column("time", words("Time"), 104, filterable=False),
        Column(
            "client",
            words("Client"),
            62,
            lambda row: row.client,
            lambda row: row.client,
            mono=True,
            tip=lambda row: row.peer,
            filterable=False,
        ),
        Column(
            "direction",
            "",
            26,
            lambda row: FROM_CLIENT if row.direction == "in" else FROM_SERVER,
            lambda row: row.direction,
            tone=lambda row: "live" if row.direction == "out" else "",
            filterable=False,
            tip=lambda row: tr("the client asks") if row.direction == "in" else tr("the server asks"),
        ),
        text_column("name", words("Request"), 240, mono=True, filterable=False, elide="middle"),
        Column(
            "code",
            words("Code"),
            64,
            lambda row: "" if row.exchange.broken else f"{row.code}",
            lambda row: row.code,
            right=True,
            mono=True,
            filterable=False,
        ),
        topic_column("topic", words("Topic"), 150, filterable=False),
        number_column("queueId", words("Queue"), 56, filterable=False),
        number_column("offset", words("Offset"), 100, jump=entry_place, filterable=False),
        Column(
            "answer",
            words("Answer"),
            170,
            _answer_text,
            lambda row: row.exchange.answer_code,
            tone=lambda row: _TONES[answer_chip(row).kind],
            elide="never",
            filterable=False,
        ),
        Column("ms", words("ms"), 88, ms_text, lambda row: row.ms, right=True, mono=True, filterable=False),
        number_column("bytes", words("Bytes"), 72, filterable=False),
        Column(
            "physicalOffset",
            words("Unit"),
            112,
            lambda row: number(row.exchange.written_at),
            lambda row: row.exchange.written_at,
            right=True,
            mono=True,
            jump=unit_place,
            hides=True,
            slim=True,
            filterable=False,
        ),
        text_column("group", words("Group"), 120, slim=True, filterable=False),
    ),
    look=_look,
    record=lambda row: request_record(row.exchange),
    verdict=lambda row: answer_chip(row).word,
)


def _frame_name(frame: Frame) -> str:
    """Return the request's name, or the response's, with a tick for success."""
    return frame.name if frame.frame == REQUEST else _answer_text(frame)


def _other_words(frame: Frame) -> str:
    """Return the number of the frame's other half, or why there is none."""
    other_half = frame.counterpart
    if other_half is not None:
        return f"{'→' if frame.frame == REQUEST else '←'} {other_half.number:,}"
    if frame.exchange.broken:
        return ""
    return tr("not seen") if frame.frame == ANSWER else answer_chip(frame).word


def _frame_look(frame: Frame) -> RowAppearance | None:
    if frame.exchange.broken or frame.frame == ANSWER:
        return _look(frame)
    return None


FRAMES = RecordKind(
    "frame",
    (
        gutter(),
        number_column("number", words("No."), 72, filterable=False),
        time_column("time", words("Time"), 104, filterable=False),
        Column(
            "client",
            words("Client"),
            62,
            lambda row: row.client,
            lambda row: row.client,
            mono=True,
            tip=lambda row: row.peer,
            filterable=False,
        ),
        Column(
            "direction",
            "",
            26,
            lambda row: FROM_CLIENT if row.direction == "in" else FROM_SERVER,
            lambda row: row.direction,
            filterable=False,
            tip=lambda row: tr("the client sent it") if row.direction == "in" else tr("the server sent it"),
        ),
        Column(
            "frame",
            words("Frame"),
            240,
            _frame_name,
            _frame_name,
            mono=True,
            filterable=False,
            elide="middle",
            tone=lambda row: "" if row.frame == REQUEST else _TONES[answer_chip(row).kind],
            tip=lambda row: row.name if row.frame == REQUEST else tr("answer to {name}", name=row.name or "?"),
        ),
        number_column("code", words("Code"), 64, filterable=False),
        number_column("opaque", words("Opaque"), 80, filterable=False),
        Column(
            "other",
            words("Other"),
            84,
            _other_words,
            lambda row: row.counterpart and row.counterpart.number,
            mono=True,
            jump=lambda row: row.counterpart,
            filterable=False,
        ),
        topic_column("topic", words("Topic"), 150, filterable=False),
        number_column("queueId", words("Queue"), 56, filterable=False),
        number_column("offset", words("Offset"), 100, jump=entry_place, filterable=False),
        Column(
            "ms",
            words("ms"),
            88,
            lambda row: ms_text(row) if row.frame == ANSWER else "",
            lambda row: row.ms if row.frame == ANSWER else None,
            right=True,
            mono=True,
            filterable=False,
        ),
        number_column("bytes", words("Bytes"), 72, filterable=False),
        Column(
            "physicalOffset",
            words("Unit"),
            112,
            lambda row: number(row.exchange.written_at),
            lambda row: row.exchange.written_at,
            right=True,
            mono=True,
            jump=unit_place,
            hides=True,
            slim=True,
            filterable=False,
        ),
        text_column("group", words("Group"), 120, slim=True, filterable=False),
    ),
    look=_frame_look,
    record=frame_record,
    verdict=_frame_name,
)


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A line of the details: ``part`` is its name among the parts of the ``side``'s frame (``answer``, ``request``)."""

    name: str
    value: str
    note: str = ""
    part: str = ""
    side: str = "request"
    place: Place | Frame | None = None
    head: bool = False


def field_rows(row: ShownRow) -> list[FieldRow]:
    """Return the response with its links, then the request's head, then its header fields with long names."""
    exchange = row.exchange
    if exchange.broken:
        return [
            FieldRow(tr("No frame"), engine_words(exchange.request.reason), head=True),
            FieldRow(tr("Bytes"), number(len(exchange.request.data))),
        ]
    if isinstance(row, Frame):
        if row.frame == REQUEST:
            return [*_request_rows(row), _other_row(row, tr("Answer"))]
        return [*_answer_rows(row), _other_row(row, tr("Request"))]
    return [*_answer_rows(row), *_request_rows(row)]


def _other_row(frame: Frame, name: str) -> FieldRow:
    """Return a link to the other half of a frame."""
    note = "" if frame.counterpart is None else frame.name if frame.frame == ANSWER else answer_chip(frame).word
    return FieldRow(name, _other_words(frame), note, place=frame.counterpart, head=True)


def _answer_rows(row: ShownRow) -> list[FieldRow]:
    rows: list[FieldRow] = []
    answer = row.exchange.answer
    if answer is not None and answer.command is not None:
        delay = "" if isinstance(row.exchange, OrphanResponse) else tr("{ms} ms later", ms=ms_text(row))
        code = answer.command.code
        rows.append(FieldRow(tr("Answer"), f"{code} {answer_name(code)}", delay, "code", "answer", head=True))
        if answer.command.remark:
            rows.append(FieldRow("remark", answer.command.remark, "", "remark", "answer"))
        for name, value in answer.command.fields.items():
            place, note = _answer_link(row, name)
            rows.append(FieldRow(name, value, note, EXTRA + name, "answer", place))
        if answer.data and answer.body:
            rows.append(
                FieldRow("body", tr_plural("{n:,} byte", "{n:,} bytes", n=len(answer.body)), "", "body", "answer")
            )
    else:
        rows.append(FieldRow(tr("Answer"), answer_chip(row).word, head=True))
    return rows


def _request_rows(row: ShownRow) -> list[FieldRow]:
    exchange = row.exchange
    command = exchange.command
    language = f"{command.language} {release_of(command.version)}"
    response_mode = tr("one-way") if exchange.one_way else tr("waits for an answer")
    rows = [
        FieldRow(tr("Request"), f"{exchange.code} {request_name(exchange.code)}", response_mode, "code", head=True),
        FieldRow("opaque", f"{command.opaque}", "", "opaque"),
        FieldRow("flag", f"{command.flag}", "", "flag"),
        FieldRow("language", language, "", "language"),
    ]
    if command.remark:
        rows.append(FieldRow("remark", command.remark, "", "remark"))
    rows.append(FieldRow("extFields", number(len(command.fields)), "", "", head=True))
    rows += _extra(command)
    if exchange.request.data and exchange.request.body:
        rows.append(FieldRow("body", tr_plural("{n:,} byte", "{n:,} bytes", n=len(exchange.request.body)), "", "body"))
    return rows


def _extra(command: Command) -> list[FieldRow]:
    long_names = SHORT_NAMES if command.code in SHORT_FIELD_SENDS else {}
    return [
        FieldRow(name, _visible_separators(value), long_names.get(name, ""), EXTRA + name)
        for name, value in command.fields.items()
    ]


def _visible_separators(value: str) -> str:
    """Make the separators of property texts visible."""
    return value.replace("\x01", "␁").replace("\x02", "␂")


def _answer_link(row: ShownRow, name: str) -> tuple[Place | None, str]:
    if name == "msgId" and (unit := unit_place(row)) is not None:
        return unit, tr("{offset:,} → the unit it wrote", offset=unit.offset or 0)
    if name == "queueOffset" and (entry := entry_place(row)) is not None:
        return entry, tr("→ queue entry")
    return None, ""


FIELD_ROWS = RecordKind(
    "requestField",
    (
        Column(
            "name",
            words("Field"),
            130,
            lambda row: row.name,
            lambda row: row.name,
            mono=True,
            tone=lambda row: "text" if row.head else "text2",
            filterable=False,
        ),
        Column(
            "value",
            words("Value"),
            200,
            lambda row: row.value,
            lambda row: row.value,
            mono=True,
            jump=lambda row: row.place,
            filterable=False,
        ),
        text_column("note", words("Meaning"), 150, tone=lambda _row: "text3", filterable=False),
    ),
)


@dataclass(frozen=True, slots=True)
class FilterEntry:
    """A line of the list of filters: selecting it applies ``term``."""

    kind: str
    name: str
    count: int | None
    term: str
    mark: str = ""
    tip: str = ""


def filter_entries(log: RequestLog) -> list[FilterEntry]:
    """Return connections, codes, responses, held pulls and broken frames, each as a filter."""
    rows = [FilterEntry("head", tr("Connections"), len(log.clients), "")]
    for client in list(log.clients.values())[:200]:
        heartbeats = client.heartbeats
        groups = ", ".join(dict.fromkeys((*heartbeats.producers, *heartbeats.consumers)))
        label = groups or heartbeats.client_id or client.peer or client.server
        language = f"{heartbeats.language} {release_of(heartbeats.version)}" if heartbeats.language else ""
        tip = " · ".join(part for part in (client.peer, heartbeats.client_id, language) if part)
        mark = "warn" if client.not_ok else "" if client.open else "out"
        rows.append(
            FilterEntry(
                "client", f"{INDENT}{client.name}  {label}", client.requests, term_of("client", client.name), mark, tip
            )
        )
    rows.append(FilterEntry("head", tr("Codes"), len(log.codes), ""))
    for code, count in log.codes.most_common(40):
        name = request_name(code)
        rows.append(FilterEntry("code", f"{INDENT}{name}  {code}", count, term_of("code", code)))
    rows.append(FilterEntry("head", tr("Answers"), len(log.answers), ""))
    for code, count in log.answers.most_common(40):
        mark = (
            "warn"
            if code not in {ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.QUERY_NOT_FOUND}
            else ""
        )
        rows.append(FilterEntry("answer", INDENT + answer_name(code), count, term_of("answerCode", code), mark))
    rows.append(FilterEntry("head", tr("Held now"), log.waiting, "held and waits"))
    rows.append(FilterEntry("head", tr("Broken frames"), log.broken, "broken", "error" if log.broken else ""))
    return rows


FILTER_ENTRIES = RecordKind(
    "requestTalk",
    (
        gutter(22),
        Column(
            "name",
            words("Talk"),
            160,
            lambda row: row.name,
            lambda row: row.name,
            elide="middle",
            tone=lambda row: "text" if row.kind == "head" else "text2",
            tip=lambda row: row.tip or row.name,
            filterable=False,
        ),
        number_column("count", words("Count"), 64, filterable=False),
    ),
    look=lambda row: RowAppearance(mark=row.mark),
)
