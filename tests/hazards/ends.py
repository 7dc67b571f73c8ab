# SPDX-License-Identifier: MIT
"""ends: however a process ends, its status is its own and its samples are kept."""
import hazard
from hazard import Hazard

BUSY = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: sum(range(1000))\n"


def plain(case):
    """An exit status of its own, by sys.exit."""
    for status in (0, 1, 7, 255):
        case.program(["-c", BUSY + "import sys; sys.exit(%d)" % status], expect=status, twin=True)


HAZARDS = [
    Hazard("ends.plain", plain),
]
