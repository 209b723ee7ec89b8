"""A broker over a writable store: the meaning of each request, and the background services (docs/protocol/broker.md,
docs/protocol/behaviour.md).

A processor a module, each with its table ``HANDLERS``: request code → function. State that outlives a request is a
table with a name; what goes on by itself is a service with ``step()``.
"""
