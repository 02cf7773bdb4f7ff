"""The project's learner, alone and with mixtures beside it, by the names that results give them."""

from collections.abc import Callable
from functools import partial

from faust_oslrau.learner import OSLRAU

WITH_MIXTURES = partial(OSLRAU, mixtures=True)

LEARNERS: dict[str, Callable[[], OSLRAU]] = {"oslrau": OSLRAU, "mixtures": WITH_MIXTURES}
