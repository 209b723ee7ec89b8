"""The open store, jobs off the loop, the worker process, places, settings. It knows no widget."""
