"""The filter language of ``--where`` and of the filter line: text → tree → test of units, of records, of whole blocks.

The grammar is :data:`GRAMMAR`, which the command line and the viewer show as help. Words bind, from loose to tight:
``or``, ``and``, ``not``, comparisons (which do not chain), ``&``, ``+`` and ``-``. Mistakes of kind are found while the
text is read, and every complaint (:class:`engine.errors.BadFilter`) has the place of the offending word. A comparison
with an absent value is false, also a negated one (``!=``, ``not in``); ``not (…)`` around it is then true.

Stages, one module each: ``lexer`` (words), ``parse`` (tree, with ``kinds``), ``tree`` (nodes and their
text), ``evaluate`` (closures), ``blocks`` (whole blocks of a scan, by ``vector``, which imports
numpy), ``complete`` (what to type next). Pure but for the clock that ``now`` reads where the caller gives no time.
"""

from engine.query.complete import Completion, complete
from engine.query.fields import FIELDS, GRAMMAR, FieldSpec
from engine.query.filter import Filter, Record, and_, condition, negate, or_, parse
from engine.query.lexer import quote
from engine.query.tree import text_of

__all__ = [
    "FIELDS",
    "GRAMMAR",
    "Completion",
    "FieldSpec",
    "Filter",
    "Record",
    "and_",
    "complete",
    "condition",
    "negate",
    "or_",
    "parse",
    "quote",
    "text_of",
]
