"""What any view draws with: record view, hex view, plots, the Line, the small pieces. They know no store."""
