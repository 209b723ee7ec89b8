"""Findings: what the rules saw, the four answers, and what the next start of a broker would do."""
