"""The widgets that every view is built from: tables, the hex view, plots, the Line, small parts. They know no store."""
