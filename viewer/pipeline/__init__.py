"""Pipeline jobs: start them, follow them, and show their results."""
