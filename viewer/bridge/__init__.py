"""Between the engine and the window: the open store, jobs off the loop, places. It knows no widget."""
