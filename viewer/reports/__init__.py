"""Report on a store: its content, the HTML file, the dialog that saves it."""
