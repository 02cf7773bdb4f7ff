"""Generated streams of real systems' processes, their faults and their lasting changes.

Choices between mechanisms may be made on `CHOICES`; `FINAL` is to be looked at once, in the end.
"""

from .changes import Changed, changes, redrawn, relevelled
from .choices import CHOICES
from .draws import System
from .exchangeable import EXCHANGEABLE
from .faults import KINDS, Faulty, with_aftermaths, with_faults, with_lone, with_spikes
from .final import FINAL

__all__ = [
    "CHOICES",
    "EXCHANGEABLE",
    "FINAL",
    "KINDS",
    "Changed",
    "Faulty",
    "System",
    "changes",
    "redrawn",
    "relevelled",
    "with_aftermaths",
    "with_faults",
    "with_lone",
    "with_spikes",
]
