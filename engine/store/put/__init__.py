"""The way of a put: checks, rules, columns, whole units stored again (spec 2.8, 7, 8.1)."""
