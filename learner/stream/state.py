"""What the scores of a partition depend on, beside its next record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.missing import LogDensity
from faust_oslrau.learner.categories.rows import BESIDE, CategoricalRows
from faust_oslrau.learner.entities.habits import WIDEST
from faust_oslrau.learner.entities.layer import Entities
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.protocol import InUnits, Predictive, Which
from faust_oslrau.learner.queries.density import Evaluation
from faust_oslrau.learner.rates.layer import Rates
from faust_oslrau.learner.scoring.block import BlockMaker, RateChange, Silence, moved
from faust_oslrau.learner.scoring.clock import Clock
from faust_oslrau.learner.scoring.drift import Drift
from faust_oslrau.learner.scoring.incidents import Incidents
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.ranges import Ranges
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.reference import Reference, marks
from faust_oslrau.learner.scoring.relevance import Relevance
from faust_oslrau.learner.scoring.repeats import Repeats
from faust_oslrau.learner.scoring.tail_mass import TailMass
from faust_oslrau.learner.scoring.transforms import Transforms
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.silence.layer import Silences

from .late import LateCategories, LateFields

FIRST_BATCH: Final = 16
"""Records of the first learning batch; each next one is twice as long, up to the batch size."""


class Ranked(NamedTuple):
    """How unusual rows are: scores, and what they come from.

    Attributes
    ----------
    evaluation
        The learner's evaluation, which learning can reuse.
    log_density
        Log-densities (m,) of the rows as the learner is given them.
    past
        Log-densities (m,) of the running means in them, 0 without a history.
    measures
        All measures (m, k), the log-density first.
    scores
        One score of each row (m,), high = usual.
    """

    evaluation: Evaluation
    log_density: FloatArray
    past: FloatArray | float
    measures: FloatArray
    scores: FloatArray


class Pending(NamedTuple):
    """Rows (m, d) as the learner is given them, their measures (m, k), scores and marks (m,)."""

    rows: FloatArray
    measures: FloatArray
    scores: FloatArray
    marks: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, marks: FloatArray, ranked: Ranked | None) -> Self:
        """Return rows with their scores, unknown ones without a model."""
        rows = rows.copy()  # a view of them would keep the whole block in memory
        if ranked is not None:
            return cls(rows, ranked.measures, ranked.scores, marks)
        unknown = np.full((len(rows), 1), np.nan)
        return cls(rows, unknown, unknown[:, 0], marks)


class Layered(NamedTuple):
    """What the layers made of rows (m, d + c), each of what the one before it did; None for off.

    Attributes
    ----------
    rows
        The transformed rows.
    numbers
        Their columns (m, d) that are numbers.
    slots
        The slots (m,) of their entities, and which are new there (m,).
    categorical, own, seasonal
        Numbers as they would be with average categories, in units of their entity, and at an
        average hour.
    of_categories
        As `CategoricalRows` has it (m, 3); 0 without categories.
    learned
        Rows as the learner is given them.
    stuck
        The evidence that fields are stuck (m, d).
    marks
        As `ScorerState.marks` has them: equal where rows are (m,).
    """

    rows: FloatArray
    numbers: FloatArray
    slots: tuple[IntArray, Mask]
    categorical: CategoricalRows | None
    own: InUnits | None
    seasonal: InUnits | None
    of_categories: FloatArray
    learned: FloatArray
    stuck: FloatArray
    marks: FloatArray


@dataclass
class ScorerState:
    """The learner, the layers around it, and the rows to learn at the next boundary.

    What is turned off is None: layers, incidents, silences, rates.

    Attributes
    ----------
    forecasting
        Whether to tell what is expected of each row before it is scored. No score depends on it,
        and it is not part of the state.
    neighbours, tail_mass
        Measures of how unusual a row is, beside those of the learner.
    n_records, n_fields
        Records of the stream, and numbers in each row as its layers have it: at least one, which is
        missing if all columns are categories. None before the first rows.
    pending
        The rows since the last boundary, in pieces.
    until_boundary, next_batch
        Rows until the next boundary, and rows between it and the last one.
    """

    learner: OSLRAU
    batch_size: int
    alarm_rate: float
    learning: bool
    transforms: Transforms
    categories: Categories | None
    entities: Entities | None
    relevance: Relevance
    incidents: Incidents | None = None
    history: History | None = None
    seasons: Seasons | None = None
    silences: Silences | None = None
    rates: Rates | None = None
    forecasting: bool = False
    neighbours: Neighbours = field(default_factory=Neighbours)
    tail_mass: TailMass = field(default_factory=TailMass)
    repeats: Repeats = field(default_factory=Repeats)
    ranking: Ranking = field(default_factory=Ranking)
    reference: Reference = field(default_factory=Reference)
    clock: Clock = field(default_factory=Clock)
    drift: Drift = field(default_factory=Drift)
    ranges: Ranges = field(default_factory=Ranges)
    late: LateFields = field(default_factory=LateFields)
    late_categories: LateCategories = field(default_factory=LateCategories)
    n_records: int = 0
    n_fields: int | None = None
    pending: list[Pending] = field(default_factory=list)
    until_boundary: int = FIRST_BATCH
    next_batch: int = FIRST_BATCH

    def __post_init__(self) -> None:
        """Check the parameters."""
        enough = self.batch_size >= FIRST_BATCH
        require(enough, "batch_size", self.batch_size, f"at least {FIRST_BATCH}")
        self.alarm_at(self.alarm_rate)
        self.learner.check_parameters()

    def alarm_at(self, rate: float) -> None:
        """Let other p-values alarm from the next row on; what the model learns stays the same."""
        require(0 < rate < 1, "alarm_rate", rate, "in (0, 1)")
        self.alarm_rate = rate
        self.relevance.begin_anew()

    @property
    def has_model(self) -> bool:
        """Whether rows can be scored."""
        return self.has_units and self.learner.n_records_ > 0

    @property
    def has_units(self) -> bool:
        """Whether rows are in the units in which they are learned, those of their entities."""
        return self.entities is None or self.entities.has_begun

    @property
    def n_columns(self) -> int | None:
        """Columns of the rows that the learner is given; None before the first rows."""
        if self.n_fields is None or self.history is None or not self.has_units:
            return self.n_fields
        return self.history.n_columns(self.n_fields)

    @property
    def has_own_units(self) -> bool:
        """Whether rows are scored in units of their entity or of their hour."""
        return self.entities is not None or self.seasons is not None

    @property
    def n_numbers(self) -> int | None:
        """Columns of the stream that are numbers; None before the first rows."""
        return 0 if self.categories is not None and self.categories.alone else self.n_fields

    @property
    def n_categories(self) -> int:
        """Columns of the stream that are categories."""
        return 0 if self.categories is None else self.categories.c

    @property
    def n_given(self) -> int:
        """Columns of the stream's rows, and those that are kept beside them."""
        return (self.n_numbers or 0) + self.n_categories + BESIDE

    def density_of_numbers(self) -> LogDensity | None:
        """Return the density of numbers as they would be with average categories.

        None where layers follow whose units change with each record.
        """
        history, density = self.history, self.learner.score_samples
        if self.has_own_units or not self.has_model:
            return None
        return density if history is None else lambda X: density(history.beside_unknown_means(X))

    def less_season(
        self, rows: FloatArray, times: IntArray, beside: FloatArray | None = None
    ) -> InUnits | None:
        """Return the next rows (m, d) less what is usual at their hour, None without seasons.

        ``times`` (m,) are their time stamps in milliseconds, negative for none;
        ``beside`` (m, 3) is what is known of their categories.
        """
        if self.seasons is None or not self.has_units:
            return None
        return self.seasons.take(rows, times, *self.slots(len(rows)), beside)

    def widened(self, rows: FloatArray, times: IntArray) -> FloatArray:
        """Return the next rows (m, d) beside the running means of their fields, if any are kept.

        ``times`` (m,) are their time stamps in milliseconds, negative for none.
        """
        if self.history is None or not self.has_units:
            return rows
        return self.history.take(rows, *self.slots(len(rows)), times)

    def own_fields(self, rows: FloatArray) -> FloatArray:
        """Return the rows (m, d) of rows that the learner is given."""
        return rows if self.history is None else self.history.own_fields(rows)

    def slots(self, m: int) -> tuple[IntArray, Mask]:
        """Return the slots of the next ``m`` rows, which have units, and which are new there."""
        if self.entities is not None:
            return self.entities.latest
        return np.zeros(m, np.int64), np.zeros(m, np.bool_)

    def find_silences(self, block: BlockMaker, at: slice, layered: Layered) -> list[Silence]:
        """Return what the next rows of a block show, whose entities have their slots."""
        if self.silences is None:
            return []
        moments = block.moments[at.start : at.stop + 1]
        found = self.silences.take(block.places[at], moments, *layered.slots, block.keys[at])
        return moved(found, at.start)

    def find_rate_changes(self, block: BlockMaker, at: slice, layered: Layered) -> list[RateChange]:
        """Return the changes that the next rows show, whose entities have their slots."""
        if self.rates is None:
            return []
        if self.rates.by is None:
            found = self.rates.take(block.now[at], layered.slots[1], block.keys[at])
        else:
            groups = block.groups[at]
            found = self.rates.take(block.now[at], np.zeros(len(groups), np.bool_), groups)
        return moved(found, at.start)

    @property
    def habits(self) -> Entities | None:
        """The entities, if the network's density is mixed with theirs.

        Not with a history, nor with many fields.
        """
        is_mixed = self.history is None and (self.n_fields or 0) <= WIDEST
        return self.entities if is_mixed else None

    def foreseeing(self, rows: Which) -> Predictive:
        """Return the density of some ``rows`` scored last, mixed with habits of their entities."""
        return self.learner if self.habits is None else self.habits.conditionals(self.learner, rows)

    @property
    def has_nearness(self) -> bool:
        """Whether a measure of records is how near others are.

        Not for entities with habits: the others are of other entities. Not with a history: records
        of a regime that comes back are near few recent ones, and all of them would be unusual. Not
        with categories: others near are of other categories.
        """
        return self.habits is None and self.history is None and self.categories is None

    def numbers(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, d) of rows (m, d + c) that are no categories."""
        return rows if self.categories is None else self.categories.numbers(rows)

    def marks(self, rows: FloatArray, slots: IntArray) -> FloatArray:
        """Return the marks (m,) of the next transformed rows: equal where these are alike.

        That is: equal, of the same entity, which ``slots`` (m,) tell. NaN, which equals nothing,
        where what is usual depends on the hour or on earlier records, too.
        """
        if self.seasons is not None or self.history is not None:
            return np.full(len(rows), np.nan)
        return marks(rows, slots)

    def latest_slots(self, m: int) -> tuple[IntArray, Mask]:
        """Return the slots of the next ``m`` rows, which may have no units, and which are new."""
        slots, fresh = self.slots(m)  # before there are units, those of all rows so far
        return slots[len(slots) - m :], fresh[len(slots) - m :]

    def collect(self, piece: Pending) -> None:
        """Save rows until the next boundary."""
        self.pending.append(piece)
        self.n_records += len(piece.rows)
        self.until_boundary -= len(piece.rows)

    def begin_batch(self) -> None:
        """Forget the rows that were learned, and set the next boundary."""
        self.pending = []
        self.relevance.end_batch()
        self.next_batch = min(2 * self.next_batch, self.batch_size)
        self.until_boundary = self.next_batch
