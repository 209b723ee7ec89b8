"""Messages at running brokers: a window that reads a topic by offset and time with table and detail of the Log view,
sends a message, and sends dead letters to their topics again.
"""
