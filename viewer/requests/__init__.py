"""Requests: what goes over a server's connections, each request with its answer, live or out of a file."""
