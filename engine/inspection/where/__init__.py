"""Locates a message: evidence, the ways to it, and explanations if no unit is visible."""
