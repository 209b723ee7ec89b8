"""Protobuf by a descriptor set (``protoc --include_imports --descriptor_set_out=FILE``) and the name of a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.decoding.decoders import Decode, MissingDecoder, missing_package
from engine.decoding.values import BadBody, as_json_value
from engine.errors import UsageError
from engine.sentences import plural, sentence

MAX_SCHEMA_BYTES = 16 << 20


def read_schema(name: str) -> bytes:
    """Return the content of a file of descriptors or of a schema. Raises :class:`MissingDecoder`."""
    try:
        with Path(name).open("rb") as file:
            content = file.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        raise MissingDecoder(error.strerror or str(error), file=name) from error
    if len(content) > MAX_SCHEMA_BYTES:
        raise MissingDecoder(sentence("expected at most {n:,} bytes", n=MAX_SCHEMA_BYTES), file=name)
    return content


def _pool(descriptor_set: str) -> tuple[Any, list[str]]:
    """Return the descriptors of a file, and the full names of its messages."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError:
        raise missing_package("Protobuf", "protobuf") from None
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(read_schema(descriptor_set))
    except DecodeError:
        raise UsageError(
            sentence("expected a set of descriptors, as protoc --descriptor_set_out writes it"), file=descriptor_set
        ) from None
    pool = descriptor_pool.DescriptorPool()
    by_name = {file.name: file for file in files.file}
    added: set[str] = set()
    names: list[str] = []

    def add(file: Any) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for dependency in file.dependency:
            if dependency in by_name:
                add(by_name[dependency])
            else:
                _add_well_known(pool, dependency, descriptor_set)
        pool.Add(file)
        names.extend(_message_names(file.message_type, file.package))

    try:
        for file in files.file:
            add(file)
    except (TypeError, KeyError, RecursionError) as error:
        raise UsageError(
            sentence("the descriptors do not fit together: {problem}", problem=error), file=descriptor_set
        ) from None
    return pool, names


def _add_well_known(pool: Any, name: str, descriptor_set: str) -> None:
    """Add a file of Google's own that the set imports but does not have."""
    import importlib

    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    try:
        if not name.startswith("google/protobuf/"):
            raise ImportError
        pool.AddSerializedFile(importlib.import_module(module).DESCRIPTOR.serialized_pb)
    except ImportError:
        raise UsageError(
            sentence("the set imports {name} and does not have it: use protoc --include_imports", name=name),
            file=descriptor_set,
        ) from None


def _message_names(messages: Any, scope: str) -> list[str]:
    names = []
    for message in messages:
        name = f"{scope}.{message.name}" if scope else message.name
        names.append(name)
        names += _message_names([nested for nested in message.nested_type if not nested.options.map_entry], name)
    return names


def message_types(descriptor_set: str) -> list[str]:
    """Return the full names of the messages in a descriptor set, sorted."""
    return sorted(_pool(descriptor_set)[1])


def prepare(descriptor_set: str, message_type: str) -> Decode:
    """Return the decoder of a message type. Raises :class:`UsageError`, :class:`MissingDecoder`."""
    pool, names = _pool(descriptor_set)
    from google.protobuf import json_format, message, message_factory, unknown_fields

    try:
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(message_type))
    except KeyError:
        raise UsageError(
            sentence(
                "there is no message {name}; there are {names}",
                name=repr(message_type),
                names=", ".join(sorted(names)[:20]) or "none",
            ),
            file=descriptor_set,
        ) from None

    def decode(body: bytes) -> Any:
        value = kind()
        try:
            value.ParseFromString(body)
            unknown_count = len(unknown_fields.UnknownFieldSet(value))
            if unknown_count and not value.ListFields():
                raise BadBody(sentence("no field of {name} is in the body", name=message_type))
            record = json_format.MessageToDict(value, preserving_proto_field_name=True, descriptor_pool=pool)
        except message.DecodeError:
            raise BadBody(sentence("not a message {name}", name=message_type)) from None
        except (json_format.Error, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise BadBody(sentence("not valid {kind}: {problem}", kind="Protobuf", problem=error)) from None
        if unknown_count:
            record["(unknown)"] = plural(
                "{n:,} field is not in {name}", "{n:,} fields are not in {name}", n=unknown_count, name=message_type
            )
        return as_json_value(record)

    return decode
