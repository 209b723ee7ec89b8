"""What ticks beside the puts: flush, commit, dispatch, allocation, cleaning. Each is one ``step()`` in a loop."""
