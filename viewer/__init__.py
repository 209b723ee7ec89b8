"""Storescope's viewer: one window over the engine; the only package that knows Qt.

This file imports nothing, so that the command line can load the ``view`` command without starting Qt.
"""
