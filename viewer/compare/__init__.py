"""Two stores side by side: windows that go together, all differences; and what was built again from a log."""
