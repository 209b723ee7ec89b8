"""The way of a put: checks, rules, columns, whole units stored again (docs/formats/commit-log.md#append,
docs/formats/writing.md#flush, #checks).
"""
