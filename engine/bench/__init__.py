"""The measurements of ``storescope bench``, on stores of its own: reads beside plain C, writes, dispatch, recovery,
the lab.

Figures that need a partner (a warm JVM, another program, the window) are measured from ``tests/bench``.
"""
