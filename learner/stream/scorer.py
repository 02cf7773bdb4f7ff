"""StreamScorer: scores of a partition's records that depend on these records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.entities.layer import Entities
from faust_oslrau.learner.entities.roster import Name
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.scoring.block import BlockMaker, Forecast, ScoredBlock
from faust_oslrau.learner.scoring.incident import IncidentParameters
from faust_oslrau.learner.scoring.incidents import Incidents
from faust_oslrau.learner.scoring.reference import ADAPT_AFTER, Reference
from faust_oslrau.learner.scoring.relevance import Relevance
from faust_oslrau.learner.scoring.transforms import Transforms
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.silence.layer import Silences
from faust_oslrau.learner.state import Extent, Parts

from . import packing
from .explaining import entity_events
from .forecasting import forecast
from .given import checked, groups_of, keys_of, numbered, transformed
from .learning import learn
from .parameters import ScorerParameters
from .queries import ScorerQueries
from .relearning import relearn
from .row_scores import score
from .state import Layered, Pending, ScorerState
from .widening import add_categories, add_numbers, takes_fields


class StreamScorer(ScorerParameters, ScorerQueries):
    """Scores one partition's valid records in order and learns from them.

    Learning happens at boundaries counted in records from the partition's start, after 16, 48,
    112, 240, ... and then every ``batch_size``; a record is scored by the model as it stood at
    the last boundary before it. Any cutting of the stream into calls gives the same bits.

    Parameters
    ----------
    learner
        The density model; nothing else may change it.
    batch_size
        Records of a learning batch, at least 16.
    alarm_rate
        Largest p-value of an anomaly, in (0, 1).
    learning
        If False, the learner scores as it is and learns nothing.
    transforms
        By column number, ``log``, ``log1p``, ``asinh`` or ``count``: the learner is given the
        transformed values; scores stay in the fields' own units. Counts are whole numbers from 0
        on; their part of the log-likelihood is the logarithm of a probability.
    n_categories
        How many columns, the last ones, are categories: numbers that stand for values without
        order. The learner is given the other columns as they would be with average categories; if
        there are none, one number that is always missing. Log-likelihoods are those of numbers and
        categories together.
    max_entities
        Most entities at a time, if each record belongs to an entity: a device, a customer. The
        learner is given rows in units of their entity, so what counts is what is unusual for it;
        log-likelihoods stay in the fields' own units. None is no entities.
    max_former_entities
        Most entities that gave way whose levels and scales are kept, for when they come back.
    history
        Spans of running means, such as ``("10",)`` for 10 records or ``("30s", "10m")``. The
        learner is given each row beside the means of its fields before it: of the partition's rows,
        or of those of its entity. Log-likelihoods are then those of a row given these means. None
        is no history.
    seasons
        Time zone such as ``Europe/Berlin``. The learner is given rows less what is usual at their
        hour of the day and of the week there, as far as that is sure; log-likelihoods stay in the
        fields' own units. When another season begins to count, the last 4,096 rows are learned
        anew. None is no seasons.
    adapt_after
        A fault is not learned, a new regime is: records far from all others are held back until so
        many have come, from 1 to 8,192. Then they are learned.
    directions
        By column number, ``high`` or ``low``: the side of what is expected on which deviations
        matter. A record whose most unusual fields are off on the other side raises no alarm.
    least
        By column number, how far a value is from what is expected, in the field's own units, before
        its deviation matters.
    incidents
        When incidents open and close. None follows no incidents.
    entity_events
        What to tell of entities, with ``max_entities``: ``new`` tells of each new one, ``unusual``
        of those that become unusual as a whole among all entities, and usual again.
    silences
        Whether to find silences of entities, and of the partition, that are longer than the gaps
        between their records so far.
    rates
        Seconds of a window of record time, 1 to 3,600: finds changes of how many records the
        partition and each entity bring in one, given the hour of the day and of the week. None does
        not look at that.
    rates_by
        Name of a field: records are counted for each of its values, the ``groups`` of ``process``,
        in place of each entity. Up to 1,000 values are followed at a time.
    forecasting
        Whether blocks tell what was expected of each row before it came. No score depends on it.

    Examples
    --------
    >>> import numpy as np
    >>> from faust_oslrau.learner import OSLRAU
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[800] = [9.0, 0.0, 0.0]
    >>> block = StreamScorer(OSLRAU(), alarm_rate=0.01).process(X)
    >>> np.isnan(block.log_likelihood[:16]).all(), np.unique(block.n_learned)
    (np.True_, array([  0,  16,  48, 112, 240, 496, 752]))
    >>> block.is_anomaly[800]
    np.True_
    >>> at = np.flatnonzero(np.flatnonzero(block.is_anomaly) == 800)[0]  # its row of the blame
    >>> block.blame.order[at, : block.blame.n_blamed[at]]  # the fields to blame
    array([0])

    The same stream in pieces gives the same bits.

    >>> scorer = StreamScorer(OSLRAU(), alarm_rate=0.01)
    >>> pieces = [scorer.process(X[start : start + 7]).p_value for start in range(0, 1000, 7)]
    >>> np.array_equal(np.concatenate(pieces), block.p_value, equal_nan=True)
    True
    """

    def __init__(
        self,
        learner: OSLRAU,
        batch_size: int = 256,
        alarm_rate: float = 0.001,
        *,
        learning: bool = True,
        transforms: Mapping[int, str] | None = None,
        n_categories: int = 0,
        max_entities: int | None = None,
        max_former_entities: int = 100_000,
        history: Sequence[str] | None = None,
        seasons: str | None = None,
        adapt_after: int = ADAPT_AFTER,
        directions: Mapping[int, str] | None = None,
        least: Mapping[int, float] | None = None,
        incidents: IncidentParameters | None = None,
        entity_events: Sequence[str] = (),
        silences: bool = False,
        rates: float | None = None,
        rates_by: str | None = None,
        forecasting: bool = False,
    ) -> None:
        self._state = ScorerState(
            learner,
            batch_size,
            alarm_rate,
            learning,
            Transforms(transforms or {}),
            Categories(n_categories) if n_categories else None,
            None if max_entities is None else Entities(max_entities, max_former_entities),
            Relevance(directions or {}, least or {}),
            None if incidents is None else Incidents(incidents),
            None if history is None else History(history, centred=max_entities is not None),
            None if seasons is None else Seasons(seasons),
            Silences() if silences else None,
            forecasting=forecasting,
            reference=Reference(adapt_after),
        )
        self.entity_events = entity_events
        self.rates, self.rates_by = rates, rates_by

    def process(
        self,
        X: ArrayLike,
        entity: Sequence[Name] | NDArray[Any] | None = None,
        places: ArrayLike | None = None,
        groups: Sequence[Name] | NDArray[Any] | None = None,
    ) -> ScoredBlock:
        """Score the stream's next rows (m, d), NaN = missing, and learn at each boundary.

        With ``max_entities``, ``entity`` has the entity of each row: bytes, text as UTF-8, a whole
        number as its digits, or None for the entity of all rows without one. ``places`` (m, 2) are
        the rows' offsets and timestamps, by which incidents name them; by default their numbers in
        the stream, and -1. Seasons, silences, rates and a history over seconds need the timestamps,
        in milliseconds; negative ones are unknown. With ``rates_by``, ``groups`` (m,) has the value
        of that field of each row, as ``entity`` has the entity. Values beyond 1e150 count as 1e150,
        and those below -1e150 as -1e150.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before,
            or holds a value that its column's transform does not take; or ``entity`` does not have
            one entity for each row.
        """
        given = checked(self._state, self.n_fields, X)
        keys = keys_of(self._state, entity, len(given))
        rows = transformed(self._state, given)
        self._state.n_fields = given.shape[1] - self._state.n_categories or 1
        numbers = numbered(self.n_records, places, len(rows))
        grouped = groups_of(self._state, groups, len(rows))
        block = BlockMaker(given, numbers, self._state.clock.take(numbers), keys, grouped)
        if self.forecasting:
            block.forecasts.append(Forecast(*np.empty((3, 0, given.shape[1]))))
        start = 0
        while start < len(rows):
            stop = min(start + self._state.until_boundary, len(rows))
            self._advance(rows[start:stop], keys[start:stop], block, slice(start, stop))
            start = stop
        return block.finish(self._state.drift.statistic)

    def takes_fields(self, numbers: int, categories: int = 0) -> bool:
        """Whether ``add_numbers`` and ``add_categories`` take so many."""
        return takes_fields(self._state, numbers, categories)

    def add_numbers(self, transforms: Sequence[str | None]) -> None:
        """Let the next rows have more numbers, as if they had been missing in all rows so far.

        They come after the numbers there are and before the categories, each with its transform or
        None. They are independent of the others until enough records have them.

        Raises
        ------
        InvalidParameterError
            There is no such transform, or the model would have to be another one: entities with
            habits have up to 32 numbers, and each Gaussian of the background up to 128 columns.
        """
        add_numbers(self._state, transforms)

    def add_categories(self, k: int) -> None:
        """Let the next rows have ``k`` more categories, as if all rows so far had lacked them.

        They come after the categories there are. Numbers are independent of them until enough
        records have them. Values for which there is no room beside those of so many
        categories are told apart no more, the rarest first. Beside numbers alone, how near other
        records are does not count any more: others are of other categories.

        Raises
        ------
        InvalidParameterError
            There would be more than 128, or the first come while there are entities of which
            nothing is learned yet.
        """
        add_categories(self._state, k)

    def to_bytes(self) -> bytes:
        """Write the whole state, with pending records, so that it continues to the same bits."""
        return b"".join(self.to_parts())

    def to_parts(self) -> Parts:
        """Return what ``to_bytes`` joins, without copying it; valid until the next change."""
        return packing.to_parts(self)

    @classmethod
    def from_bytes(cls, data: bytes | Extent, learner: type[OSLRAU] = OSLRAU) -> Self:
        """Restore what ``to_bytes`` wrote, with a learner of type ``learner``.

        Raises
        ------
        StateError
            The bytes are damaged, of another format version, or not those of a scorer.
        """
        return packing.from_bytes(cls, data, learner)

    def _layered(self, rows: FloatArray, keys: Sequence[Key], times: IntArray) -> Layered:
        """Take the next transformed rows through the layers between them and the learner."""
        state, categorical, own = self._state, None, None
        spread = numbers = learned = state.transforms.spread(rows, state.n_records)
        beside = np.zeros((len(rows), 3))
        entities = None if state.entities is None else state.entities.roster.take(keys)
        if state.categories is not None:
            density = state.density_of_numbers()
            categorical = state.categories.take(spread, density, entities, times)
            numbers, learned = state.numbers(spread), categorical.rows
            beside = categorical.of_categories
        if state.entities is not None and entities is not None:
            own = state.entities.take(learned, keys, *entities)
            learned = own.rows
        seasonal = state.less_season(learned, times, beside)
        learned = state.widened(learned if seasonal is None else seasonal.rows, times)
        slots = state.latest_slots(len(rows))
        stuck = state.repeats.take(state.numbers(rows), *slots)
        return Layered(
            spread, numbers, slots, categorical, own, seasonal, beside, learned, stuck,
            state.marks(rows, slots[0]),
        )  # fmt: skip

    def _advance(self, rows: FloatArray, keys: Sequence[Key], block: BlockMaker, at: slice) -> None:
        """Score the next rows, which reach at most one boundary, and learn there."""
        state, began = self._state, perf_counter()
        layered = self._layered(rows, keys, block.times[at])
        block.silences += state.find_silences(block, at, layered)
        block.rate_changes += state.find_rate_changes(block, at, layered)
        ranked = score(state, layered, block, at)
        if state.forecasting:
            density = None if ranked is None else state.foreseeing(slice(None))
            block.forecasts.append(forecast(state, density, layered))
        state.collect(Pending.of(layered.learned, layered.marks, ranked))
        scored = perf_counter()
        block.score_seconds += scored - began
        if state.until_boundary == 0:
            learn(state, block, at.stop - 1, None if ranked is None else ranked.evaluation)
            relearn(state, int(block.now[at.stop - 1]))
            block.learn_seconds += perf_counter() - scored
        block.entity_events += entity_events(state, at.start)
