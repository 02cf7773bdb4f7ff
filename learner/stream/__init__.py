"""One partition's scores, as a function of its rows."""

from .row_scores import WARM_UP
from .scorer import StreamScorer
from .state import FIRST_BATCH

__all__ = ["FIRST_BATCH", "WARM_UP", "StreamScorer"]
