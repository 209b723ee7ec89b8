"""The commands that write into a store that is there, with arguments for each."""

from __future__ import annotations

WRITERS = {
    "put": ["put", "STORE", "--topic", "Orders", "--body", "tea", "--yes"],
    "serve": ["serve", "STORE", "--port", "0", "--namesrv-port", "0"],
    "recover": ["recover", "STORE", "--apply", "--yes"],
    "dispatch": ["dispatch", "STORE", "--yes"],
    "repair": ["repair", "STORE", "--apply", "--yes"],
    "set_values": ["set-checkpoint", "STORE", "physicMsgTimestamp", "1", "--yes"],
    "replay": ["replay", "RECORDING", "--store", "STORE", "--yes"],
    "replicate": ["replicate", "127.0.0.1:9", "STORE"],
}
"""STORE is the store, RECORDING a recording of requests."""
