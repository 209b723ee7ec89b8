"""Requests view: traffic on a server's connections, each request with its response, live or from a file."""
