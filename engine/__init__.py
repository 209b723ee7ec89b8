"""Storescope's engine: codecs, read-only inspection and the command line for Apache RocketMQ message stores.

This file stays a docstring and a version: whoever imports one codec must not pay for the rest.
"""

__version__ = "0.1.0"
