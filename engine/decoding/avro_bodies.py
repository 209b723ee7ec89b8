"""Avro by a schema file. A body is one datum, also behind the header of Avro's single-object encoding."""

from __future__ import annotations

import io
import json
from typing import Any

from engine.decoding.decoders import Decode, bytes_follow, missing_package
from engine.decoding.protobuf_bodies import read_schema
from engine.decoding.values import BadBody, as_json_value
from engine.errors import UsageError
from engine.sentences import sentence

_SINGLE_OBJECT = b"\xc3\x01"
_CONTAINER = b"Obj\x01"
_HEADER_BYTES = 10


def prepare(schema_file: str) -> Decode:
    """Return the decoder of a schema. Raises :class:`UsageError`, :class:`MissingDecoder`."""
    try:
        import fastavro
        import fastavro.schema
        from fastavro import _read_py
    except ImportError:
        raise missing_package("Avro", "fastavro") from None
    try:
        plain_schema = json.loads(read_schema(schema_file))
        named: dict[str, Any] = {}
        schema = fastavro.parse_schema(plain_schema, named)
        fingerprint = fastavro.schema.fingerprint(
            fastavro.schema.to_parsing_canonical_form(plain_schema), "CRC-64-AVRO"
        )
    except (ValueError, KeyError, TypeError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise UsageError(sentence("expected an Avro schema: {problem}", problem=error), file=schema_file) from error
    except fastavro.schema.UnknownType as error:
        raise UsageError(sentence("the schema has no type {name}", name=error.name), file=schema_file) from error
    if _has_endless_array(schema, named):
        raise UsageError(
            sentence("the schema has an array of items without bytes: such a body may be endless"), file=schema_file
        )

    # The compiled reader has no bound for its depth: a body of a recursive schema could overflow the stack.
    read = _read_py.schemaless_reader if _is_recursive(named) else fastavro.schemaless_reader

    def decode(body: bytes) -> Any:
        if body.startswith(_CONTAINER):
            raise BadBody(sentence("an Avro container file, not one datum"), 0)
        start = 0
        if body.startswith(_SINGLE_OBJECT) and body[2:_HEADER_BYTES].hex() == fingerprint:
            start = _HEADER_BYTES
        stream = io.BytesIO(body[start:])
        try:
            value = read(stream, schema, None)
        except EOFError:
            raise BadBody(sentence("not valid {kind}: {problem}", kind="Avro", problem="EOF"), len(body)) from None
        except Exception as error:  # noqa: BLE001 (a body may bring any error out of the library)
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise BadBody(
                sentence("not valid {kind}: {problem}", kind="Avro", problem=problem), start + stream.tell()
            ) from None
        if stream.tell() != len(body) - start:
            raise BadBody(
                bytes_follow("Avro", len(body) - start - stream.tell()),
                start + stream.tell(),
            )
        return as_json_value(value)

    return decode


def _is_recursive(named: dict[str, Any]) -> bool:
    """Return True if a named type contains itself."""
    uses = {name: _names_in(definition, named) for name, definition in named.items()}
    for name in uses:
        reached: set[str] = set()
        pending = [name]
        while pending:
            for inner_name in uses[pending.pop()] - reached:
                if inner_name == name:
                    return True
                reached.add(inner_name)
                pending.append(inner_name)
    return False


def _names_in(schema: Any, named: dict[str, Any]) -> set[str]:
    """Return the named types that a definition refers to, or defines within."""
    names: set[str] = set()
    stack = [schema.get("fields", schema) if isinstance(schema, dict) else schema]
    while stack:
        item = stack.pop()
        if isinstance(item, str) and item in named:
            names.add(item)
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            if item.get("type") in ("record", "error", "enum", "fixed"):
                names.add(item["name"])
            stack += [item[key] for key in ("items", "values", "type", "fields") if key in item]
    return names & named.keys()


def _has_endless_array(schema: Any, named: dict[str, Any]) -> bool:
    """Return True if an array's items may take no bytes: its length is a number in the body, and nothing bounds it."""
    stack, visited = [schema], set()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item in visited or item not in named:
                continue
            visited.add(item)
            item = named[item]
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            if item.get("type") == "array" and _is_empty(item["items"], named, ()):
                return True
            stack += [item[key] for key in ("items", "values", "type") if isinstance(item.get(key), dict | list | str)]
            stack += [field["type"] for field in item.get("fields", ())]
    return False


def _is_empty(schema: Any, named: dict[str, Any], outer: tuple[str, ...]) -> bool:
    if isinstance(schema, str):
        if schema == "null":
            return True
        return schema in named and schema not in outer and _is_empty(named[schema], named, (*outer, schema))
    if isinstance(schema, dict):
        kind = schema.get("type")
        if kind in ("record", "error"):
            return all(_is_empty(field["type"], named, outer) for field in schema.get("fields", ()))
        if kind == "fixed":
            return bool(schema.get("size") == 0)
        return kind == "null" or (isinstance(kind, dict | list) and _is_empty(kind, named, outer))
    return False
