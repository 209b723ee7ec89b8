"""The three answers of a filter over a block: what :mod:`engine.query.vector` and its parts speak in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Verdicts = npt.NDArray[np.int8]
YES, PERHAPS, NO = np.int8(1), np.int8(0), np.int8(-1)
