"""The lab: a store to try things on, in a process of its own, whose plug can be pulled.

Only what the lab made is ever plugged or deleted.
"""
