"""What is asked of an open partition: its model, its entities, what is expected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.metrics import PartitionMetrics
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.learner import (
    OSLRAU,
    ChangedRate,
    EntityProfile,
    Forecast,
    SilentEntity,
)

from .compute import Compute

Answer = TypeVar("Answer")
Given = TypeVar("Given")


class PartitionQueries:
    """A partition that is asked about its state, which nothing here changes."""

    pipeline: PartitionPipeline
    metrics: PartitionMetrics
    _compute: Compute

    async def ask(self, question: Callable[[OSLRAU], Answer]) -> Answer | None:
        """Evaluate a function of the model; None if there is no model yet."""
        learner = self.pipeline.learner
        return None if learner is None else await self._in_learner_thread(question, learner)

    async def expected_range(
        self, rows: NDArray[np.float64], deviations: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the range (m, d) in which the model expects each field; NaN without a model."""
        scorer = self.pipeline.scorer
        if scorer is None or len(rows) == 0:
            return np.full(rows.shape, np.nan), np.full(rows.shape, np.nan)
        return await self._in_learner_thread(partial(scorer.expected_range, rows), deviations)

    async def common_entity(self, other: PartitionQueries) -> bytes | None:
        """Return an entity that another partition has, too, among some; None if none has."""
        mine, others = self.pipeline.scorer, other.pipeline.scorer
        if mine is None or others is None:
            return None
        return await self._in_learner_thread(mine.common_entity, others)

    async def entity_profile(self, entity: str) -> EntityProfile | None:
        """Return what is known of an entity; None if nothing is."""
        scorer = self.pipeline.scorer
        if scorer is None:
            return None
        return await self._in_learner_thread(scorer.entity_profile, entity)

    async def entity_forecast(self, entity: str) -> Forecast | None:
        """Return what is expected of an entity's next record; None if the entity is not known."""
        scorer = self.pipeline.scorer
        if scorer is None or await self.entity_profile(entity) is None:
            return None
        return await self._in_learner_thread(scorer.forecast, [entity])

    async def search_entities(self, part: str, most: int) -> list[str]:
        """Return up to `most` names of entities that contain a part, the exact one first."""
        scorer = self.pipeline.scorer
        if scorer is None:
            return []
        return await self._in_learner_thread(partial(scorer.search_entities, most=most), part)

    async def silent_entities(self, most: int) -> list[SilentEntity]:
        """Return up to `most` entities that are silent for too long, the longest silent first."""
        scorer = self.pipeline.scorer
        if scorer is None or not self.metrics.silent_entities:
            return []
        return await self._in_learner_thread(scorer.silent_entities, most)

    async def changed_rates(self, most: int) -> list[ChangedRate]:
        """Return up to `most` rates that are not as usual, those that changed first."""
        scorer = self.pipeline.scorer
        if scorer is None or scorer.rates is None:
            return []
        return await self._in_learner_thread(scorer.changed_rates, most)

    async def _in_learner_thread(self, question: Callable[[Given], Answer], given: Given) -> Answer:
        """Evaluate it in the compute thread: no other may read the learner while it learns."""
        return await self._compute.run(question, given)
