"""The view Conversation: all units of a key, a transaction or a retried message, to read from top to bottom."""
