"""The lab's form for putting messages, as a value, and the messages that it describes. No Qt.

A form is immutable, so an earlier put can be repeated or edited although the widgets show something else by now.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.codec import properties as props
from engine.codec.encode import Message
from engine.codec.message import COMMIT, PREPARED, ROLLBACK
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words

MAX_FILE_BYTES = 64 << 20
"""Maximum size of a file that becomes a body."""
MAX_BATCH_MESSAGES = 10_000
KINDS = (
    ("plain", words("plain")),
    ("delay", words("delayed")),
    ("half", words("half message")),
    ("commit", words("commit of a half message")),
    ("rollback", words("rollback of a half message")),
    ("batch", words("batch")),
)
EXTRA = {
    "delay": words("Level"),
    "commit": words("Half at"),
    "rollback": words("Half at"),
    "batch": words("Count"),
}
"""Kinds of put that need another number, with the label of that number."""
_FLAGS = {"half": PREPARED, "commit": COMMIT, "rollback": ROLLBACK}


class FormFault(ValueError):
    """The form describes no valid message; ``field`` is the name of the invalid field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class PutForm:
    """The text of each field as the user typed it. :meth:`messages` parses it.

    ``body_form`` is text, hex or file (then ``body`` is a path). ``extra`` is the number that kinds in :data:`EXTRA`
    need.
    """

    topic: str = "OrderPaid"
    queue: str = "0"
    tags: str = ""
    keys: str = ""
    flag: str = "0"
    properties: str = ""
    body: str = ""
    body_form: str = "text"
    kind: str = "plain"
    wait: bool = True
    extra: str = ""

    def message(self) -> Message:
        """Return the message that the form describes. Raises :class:`FormFault`."""
        topic = self.topic.strip()
        if not topic:
            raise FormFault("topic", tr("A message needs a topic."))
        properties = self._properties()
        properties[props.WAIT] = "true" if self.wait else "false"
        if self.kind == "delay":
            properties[props.DELAY] = str(self._number("extra", tr("delay level"), self.extra or "1", 1, 1 << 16))
        if self.kind == "half":
            properties[props.TRANSACTION_PREPARED] = "true"
        prepared = 0
        if self.kind in {"commit", "rollback"}:
            prepared = self._number("extra", tr("offset of the half message"), self.extra or "0", 0, (1 << 63) - 1)
        return Message(
            topic,
            self._body(),
            self._number("queue", tr("queue"), self.queue, 0, (1 << 31) - 1),
            properties,
            flag=self._number("flag", tr("flag"), self.flag or "0", -(1 << 31), (1 << 31) - 1),
            sys_flag=_FLAGS.get(self.kind, 0),
            prepared_transaction_offset=prepared,
            tags=self.tags.strip() or None,
            keys=self.keys.strip() or None,
        )

    def messages(self) -> list[Message]:
        """Return the messages of one put: one message, or a batch with numbered keys. Raises :class:`FormFault`."""
        if self.kind != "batch":
            return [self.message()]
        count = self._number("extra", tr("messages of the batch"), self.extra or "2", 1, MAX_BATCH_MESSAGES)
        messages = []
        for number in range(count):
            message = self.message()
            if self.keys.strip():
                message.properties = {**(message.properties or {}), props.KEYS: f"{self.keys.strip()}-{number}"}
            messages.append(message)
        return messages

    def _properties(self) -> dict[str, str]:
        """Parse ``name=value`` pairs, separated by ``;`` or line breaks."""
        properties: dict[str, str] = {}
        for part in self.properties.replace("\n", ";").split(";"):
            if not part.strip():
                continue
            name, equals_sign, value = part.partition("=")
            if not equals_sign or not name.strip():
                raise FormFault("properties", tr("Properties are name=value; name=value. Found: {text}", text=part))
            if {props.NAME_END, props.PAIR_END} & set(part):
                raise FormFault(
                    "properties", tr("The characters 0x01 and 0x02 separate properties and cannot be in one.")
                )
            properties[name.strip()] = value.strip()
        return properties

    def _body(self) -> bytes:
        if self.body_form == "hex":
            try:
                return bytes.fromhex(self.body)
            except ValueError:
                raise FormFault("body", tr("Hex is pairs of 0–9 and A–F.")) from None
        if self.body_form == "file":
            return _file_body(self.body.strip())
        return self.body.encode("utf-8", "surrogateescape")

    def _number(self, field: str, name: str, text: str, minimum: int, maximum: int) -> int:
        try:
            value = int(text.strip().replace(",", "").replace("_", ""), 0)
        except ValueError:
            raise FormFault(field, tr("{name}: expected a number, found {text}", name=name, text=text)) from None
        if not minimum <= value <= maximum:
            raise FormFault(
                field,
                tr("{name}: {low:,} to {high:,}, found {value:,}", name=name, low=minimum, high=maximum, value=value),
            )
        return value


def _file_body(text: str) -> bytes:
    path = Path(text).expanduser()
    try:
        if not path.is_file():
            raise FormFault("body", tr("No file: {path}", path=text))
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FormFault("body", tr("The file is larger than 64 MiB."))
        return path.read_bytes()
    except OSError as error:
        raise FormFault("body", engine_words(str(error))) from None
