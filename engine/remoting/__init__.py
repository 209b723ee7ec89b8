"""RocketMQ's remoting: frames and commands as values, and connections on which both sides may send requests
(docs/protocol/frames.md).

``frame`` turns bytes into commands and back, without a socket or a clock. ``codes`` is the one table of requests.
``connection`` transports commands with asyncio.
"""
