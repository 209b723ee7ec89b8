"""The view SQL: a sheet for questions to the store in SQL."""
