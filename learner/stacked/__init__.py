"""A density stacked of several kinds of sum-product networks under one root."""

from .stacked_spn import StackedSPN

__all__ = ["StackedSPN"]
