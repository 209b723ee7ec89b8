"""Positions: the ruler, the live plots, what would be lost now."""
