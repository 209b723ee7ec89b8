"""Units and fragments of units in places where no store reads them: damage, free space, images of disks.

:mod:`.unit_runs` reads the bytes and reports whole units, :mod:`.reassembly` puts units together whose bytes lie in
several places, :mod:`.salvage` says what each one is and how sure that is (docs/formats/salvage.md).
"""
