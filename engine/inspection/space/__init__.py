"""Accounts for a store's bytes: counted file by file, by a walk, or from the queues."""
