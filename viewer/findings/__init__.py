"""Findings of the check, the summary of an incident, and the plan of the next start."""
