"""Storescope's engine for RocketMQ message stores: codecs, inspection, a store engine, a broker, clients, commands.

Keep this file a docstring and a version, so that importing one codec does not import the rest.
"""

__version__ = "0.8.0"
