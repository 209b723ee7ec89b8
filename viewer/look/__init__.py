"""Look and language: theme, icons, translated words, numbers and times. It knows no store."""
