"""The ``storescope`` command: one module a command, records as JSON lines or as tables for people."""
