"""Decoded bodies on the command line: which rules are in force, and what remains undecoded."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.output import Output
from engine.decoding.bodies import BodyDecoders, DecodedBody, decoding_by
from engine.decoding.rules import DecodingRule, read_rules, saved_rules, settings_folder
from engine.decoding.values import json_text
from engine.english import number_of
from engine.errors import UsageError
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.query import Filter


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the options ``--decoded`` and ``--decode``."""
    parser.add_argument("--decoded", action="store_true", help="add each body as its decoder reads it")
    add_rules(parser)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the option ``--decode``."""
    text = "decode bodies by the rules in this file (default: the rules kept in the settings for this store)"
    parser.add_argument("--decode", metavar="RULES.json", help=text)


def rules_of(args: argparse.Namespace, store: StoreSnapshot) -> tuple[DecodingRule, ...]:
    """Return the rules of ``--decode``, else those kept for the store.

    Raises :class:`UsageError`, :class:`CannotRead`.
    """
    if args.decode is not None:
        return read_rules(Path(args.decode))
    return saved_rules(settings_folder(), store.path)


@contextmanager
def decoding(
    args: argparse.Namespace, store: StoreSnapshot, out: Output, unit_filter: Filter | None = None
) -> Iterator[BodyDecoders | None]:
    """Put the rules of the command line or of the settings in force, if ``--decoded`` or the filter needs them.

    Yields the decoders if records shall have decoded bodies. Says at the end what could not be decoded. Raises
    :class:`UsageError`, :class:`CannotRead`, :class:`~engine.decoding.decoders.MissingDecoder`.
    """
    is_wanted = getattr(args, "decoded", False)
    body_fields = sorted(unit_filter.body_fields) if unit_filter is not None else []
    if not is_wanted and not body_fields:
        if args.decode is not None:
            read_rules(Path(args.decode))  # a mistake in it is reported, also if nothing is decoded
        yield None
        return
    store.require_bodies()
    rules = rules_of(args, store)
    if body_fields and not rules:
        raise UsageError(
            sentence("{name}: no rule says how bodies are decoded; give rules with --decode FILE", name=body_fields[0])
        )
    with decoding_by(rules) as decoders:
        decoders.prepare()
        yield decoders if is_wanted else None
        _say_undecoded(decoders, out, is_wanted=is_wanted)


def _say_undecoded(decoders: BodyDecoders, out: Output, *, is_wanted: bool) -> None:
    from engine.decoding.guess import guess

    if decoders.failed_count:
        fate = "" if is_wanted else "; no condition on fields of a body is true for them"
        out.say(f"{number_of(decoders.failed_count, 'body', 'bodies')} could not be decoded{fate}")
    for topic, sample in list(decoders.topics_without_rule.items())[:10]:
        guessed = guess(topic, *sample) if is_wanted else None
        if guessed is not None:
            out.say(f"no rule for the topic {topic}; {guessed.why}, for which the rule would be {guessed.text}")
        else:
            out.say(f"no rule decodes the bodies of the topic {topic}")


def decoded_text(body: DecodedBody) -> str | None:
    """Return a decoded body as tables show it."""
    if body.error:
        return f"! {body.error}"
    return json_text(body.value) if body.decoder else None
