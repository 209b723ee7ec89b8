"""A broker over a store that is written: what each request means, and what goes on without one
(docs/protocol/broker.md, docs/protocol/behaviour.md).

A processor a module, each with its table ``ANSWERS``: request code → function. State that outlives a request is a table
with a name; what goes on by itself is a service with ``step()``.
"""
