"""Finds units and fragments of units where no store reads them: in damage, free space, and images of disks.

:mod:`.store_units` walks the store, :mod:`.searched_files` lists the bytes to search, :mod:`.run_search` finds whole
units in them, :mod:`.reassembly` puts units together whose bytes lie in several places, and :mod:`.salvage_search` says
what each unit is and how sure that is (docs/formats/salvage.md).
"""
