"""Messages and bytes of a log over its store time, stacked by topic, with the time from born to stored."""
