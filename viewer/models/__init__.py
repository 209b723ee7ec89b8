"""What tables show: columns, windows over 64-bit rows, how numbers and times are written.

Qt models at most, no widgets.
"""
