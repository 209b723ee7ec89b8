"""What a person keeps of a store: bookmarks, the report, session files."""
