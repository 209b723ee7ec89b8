"""The lab: a store to try things on, in a process of its own, whose power can be cut.

Only what the lab made is ever deleted or loses its power.
"""
