"""What a person keeps beside a store: bookmarks, session files, the report, the tour, last words."""
