"""How finely leaves divide the values of a variable that do not come again and again.

Many leaves see more detail, few ones have weights that are known better. New records decide.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .leaves import MOST_LEAVES
from .products import SharedProducts
from .sizes import Sizes

FloatArray = NDArray[np.float64]

FEW_LEAVES, FEWEST = 6144, 24
"""Where few leaves are better, a variable has this many over the square of the number of variables,
and at least 24, besides the wide leaves and those of frequent values. The more variables there are,
the more weights of a product are uncertain together. Eight have as many as the budget allows."""

FADING = 0.5
"""Share of the gain that is left when the network is built again."""

LARGEST_GAIN = 20.0
"""Nats by which one record at most counts for or against many leaves."""

Fit = Callable[[int], SharedProducts]
"""Fits products with at most so many leaves of a variable for values that are not frequent."""


class Resolution:
    """Few leaves or many, as chosen by records that have not shaped either.

    Attributes
    ----------
    few
        Leaves of a variable, for values that are not frequent, where few are better.
    fine
        Whether there are many leaves.
    gain
        Nats by which new records were likelier with many leaves; later ones weigh more.
    """

    def __init__(self, d: int) -> None:
        self.few = max(FEW_LEAVES // d**2, FEWEST)
        self.fine, self.gain = False, 0.0
        self._rivals: dict[tuple[bool, Sizes], SharedProducts] = {}

    @property
    def most(self) -> int:
        """Most leaves of a variable for values that are not frequent."""
        return self._most(self.fine)

    def choose(self) -> None:
        """Choose by the gain so far, if there is one, as the network is built again."""
        if self.gain != 0.0:
            self.fine = self.gain > 0.0
        self.gain *= FADING
        self.forget()

    def forget(self) -> None:
        """Forget the products that are compared, as the records that they know have changed."""
        self._rivals = {}

    def keep(self, products: SharedProducts, sizes: Sizes) -> None:
        """Keep a copy of the products that were just built, for a network of these ``sizes``."""
        self._rivals[self.fine, sizes] = copy.deepcopy(products)

    def compare(self, Z: FloatArray, sizes: Sizes, fit: Fit) -> None:
        """Let new columns (d, m) say which products explain them better.

        Neither has learned records since the network was built: so they are the same if ``fit``
        has to make them again from the records of that time, as after a restart.
        """
        for fine in (False, True):
            if (fine, sizes) not in self._rivals:
                self._rivals[fine, sizes] = fit(self._most(fine))
        few, many = (self._rivals[fine, sizes].log_densities(Z)[0][1] for fine in (False, True))
        self.gain += float(np.clip(many - few, -LARGEST_GAIN, LARGEST_GAIN).sum())

    def _most(self, fine: bool) -> int:
        return MOST_LEAVES if fine else self.few
