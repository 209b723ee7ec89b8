"""Whole stores and fleets of them on Spark: data sources, and jobs from data frame to data frame.

Spark itself is imported when it is asked for: reading a split, and planning, need none of it.
"""

from __future__ import annotations
