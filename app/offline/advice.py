"""Advises settings for a log: tries those that may pay, and keeps what makes records likelier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.categories.values import MOST_VALUES, most_values
from faust_oslrau.learner.stream import WARM_UP
from faust_oslrau.topics import KEY, KafkaRecord, Kind, TimeReader
from faust_oslrau.topics.columns import MANY, MOST_VERSIONS, NUMERIC, Column, columns_of
from faust_oslrau.topics.documents import parsed
from faust_oslrau.topics.field_choice import MAX_CATEGORIES

from .advised_time import best_time, known, span
from .advised_transforms import best_transform
from .comparison import compare_logs
from .quality import mean_of_best
from .trials import Gain, Trials, scored

FEWEST_ENTITIES = 5
"""Values from which on a field may name entities: fewer are categories."""

MOST_TRIED = 4
"""Fields that are tried as names of entities, and numbers that are tried as categories."""

MOST_APART = 16
"""Transforms up to which each is tried beside the others, so that none spoils them."""

HISTORY = ("10",)

SEASON_DAYS = 6

_DAY = 86_400_000


class Choice(NamedTuple):
    """A setting that was looked at: its value, whether it is advised, and why."""

    name: str
    value: Any
    is_advised: bool
    why: str


class Advice(NamedTuple):
    """What is advised for a log.

    Attributes
    ----------
    settings
        The settings, with those that are advised.
    choices
        Each setting that was looked at.
    alarms
        How many records are alarms without the advice, with it, and in both; None without advice.
    """

    settings: Settings
    choices: list[Choice]
    alarms: tuple[int, int, int] | None = None


class Advisor:
    """Tries settings on the records of a log, each beside those that were taken before.

    Parameters
    ----------
    records
        The log, partition by partition.
    settings
        What is given: nothing that it says is changed.
    told
        Hears of each trial before it is made.
    partitions
        How many partitions the log has; None for those of the records.
    """

    def __init__(
        self,
        records: Sequence[KafkaRecord],
        settings: Settings,
        told: Callable[[str], None],
        partitions: int | None = None,
    ) -> None:
        self._records = records
        found = [(each, r) for r in records if isinstance(each := parsed(r.value), dict)]
        columns = columns_of(
            [each for each, _ in found], [r.timestamp for _, r in found], [r.key for _, r in found]
        )
        self._columns = {column.name: column for column in columns}
        early = columns_of([each for each, _ in found[:WARM_UP]])
        self._early = {column.name for column in early if column.kind == Kind.CATEGORY}
        self._settings, self._before, self._given = settings, settings, Settings()
        self._told = told
        self._partitions = partitions
        self._choices: list[Choice] = []
        kinds = (
            {column.name: column.kind for column in early} if settings.chosen_fields is None else {}
        )
        self._trials = Trials(records, self._features(), kinds, told)

    def advise(self, alerts: float | None = None) -> Advice:
        """Return the advice; ``alerts`` is how many anomalous records a day someone can bear.

        Raises
        ------
        ComparisonError
            No record is scored after the warm-up.
        """
        self._topic()
        for name, look in (
            ("time", self._time), ("kinds", self._kinds), ("transforms", self._transforms),
            ("entity", self._entity), ("seasons", self._seasons), ("history", self._history),
        ):  # fmt: skip
            if getattr(self._settings, name) == getattr(self._given, name):
                look()
        if alerts is not None:
            self._alarm_rate(alerts)
        self._learner()
        return Advice(self._settings, self._choices, self._alarms())

    def _alarms(self) -> tuple[int, int, int] | None:
        if self._settings == self._before:
            return None
        self._told("all of it")
        logs = (scored(self._records, each) for each in (self._before, self._settings))
        found = compare_logs(*logs)
        before, after = (int(scores.is_alarm.sum()) for scores in found.scores)
        return before, after, int(found.group("both").sum())

    def _choose(self, name: str, value: Any, why: str, *, advised: bool = True) -> None:
        self._choices.append(Choice(name, value, advised, why))
        if advised:
            self._settings = replace(self._settings, **{name: value})

    def _take(self, name: str, value: Any, gain: Gain) -> None:
        """Take a setting if it pays."""
        self._choose(name, value, f"{gain} nats a record", advised=gain.pays)

    def _features(self) -> list[Column]:
        """Return the fields that may be scored; one that is chosen is never ignored."""
        chosen = self._settings.chosen_fields
        if chosen is None:
            return [*self._columns.values()]
        found = [column for name, column in self._columns.items() if name in chosen]
        return [column for column in found if column.kind != Kind.IGNORED]

    def _others(self) -> list[Column]:
        """Return the fields that may have another role."""
        chosen = self._settings.chosen_fields or ()
        return [column for name, column in self._columns.items() if name not in chosen]

    def _topic(self) -> None:
        topic = self._records[0].topic if self._records else self._settings.source_topics[0]
        if topic not in self._settings.source_topics:
            self._choose("source_topics", (topic,), "the records are its")

    def _time(self) -> None:
        found = [column.name for column in self._others() if column.is_time]
        best = best_time(self._records, found)
        if best is not None:
            self._choose("time", best, "its contents are times that move with the records")

    def _kinds(self) -> None:
        """Say what fields are that no single content shows."""
        kinds = {
            column.name: column.kind.value for column in self._features()
            if column.name != self._settings.time
            and (not column.is_plain or self._comes_late(column))
        }  # fmt: skip
        categories = [name for name, kind in kinds.items() if kind == Kind.CATEGORY]
        for name in categories[MAX_CATEGORIES:]:  # records alone would choose no more
            del kinds[name]
        why = {name: self._columns[name].why for name in kinds}
        before, left = self._settings, []
        for name in self._few_valued():
            self._settings = replace(before, kinds=tuple(kinds.items()))
            gain = self._gain_of_category(name)
            if gain.pays:
                kinds[name] = Kind.CATEGORY.value
                why[name] = f"other fields {gain} nats a record"
            else:
                left.append((name, f"other fields {gain} nats a record"))
        self._settings = before
        if kinds:
            told = "; ".join(f"{name}: {each}" for name, each in why.items())
            self._choose("kinds", tuple(kinds.items()), told)
        for name, told in left:
            self._choose("kinds", ((name, Kind.CATEGORY.value),), told, advised=False)

    def _few_valued(self) -> list[str]:
        """Return the numbers of few values that come again, those of the fewest first."""
        numbers = {
            column.name: column.numbers for column in self._features()
            if self._trials.kind(column.name, self._settings) in NUMERIC
        }  # fmt: skip
        n_values = {name: len(np.unique(x)) for name, x in numbers.items()}
        few = [
            name for name, n in n_values.items()
            if 1 < n <= MOST_VERSIONS and n * MANY <= len(numbers[name])
            and name not in (self._settings.time, self._settings.entity)
        ]  # fmt: skip
        return sorted(few, key=n_values.__getitem__)[:MOST_TRIED]

    def _gain_of_category(self, name: str) -> Gain:
        """Return what it brings to the other fields if one is a category in place of a number.

        Its own density and its own probability do not compare.
        """
        number = self._trials.kind(name, self._settings)
        kinds = {**dict(self._settings.kinds), name: Kind.CATEGORY.value}
        category = replace(self._settings, kinds=tuple(kinds.items()))
        own = self._alone(name, number), self._alone(name, Kind.CATEGORY)
        others, what = self._trials.n_numbers - 1, f"kinds = {{{name} = category}}"
        return self._trials.gain(self._settings, category, what, others, own)

    def _comes_late(self, column: Column) -> bool:
        """Tell whether the first records, which choose, do not show that texts are a category."""
        is_one = column.kind == Kind.CATEGORY and column.may_name_entity
        return is_one and column.name not in self._early and column.n_values <= MOST_VALUES

    def _entity(self) -> None:
        """Try what may name entities; take what pays most."""
        gains = {
            name: self._trials.gain_of_entity(self._with_kind(name, Kind.IGNORED), name)
            for name in self._candidates()
        }
        if not gains:
            return
        told = ", ".join(f"{name} {gain} nats a record" for name, gain in gains.items())
        best = max(gains, key=lambda name: gains[name].nats)
        advised = gains[best].pays and not self._is_better_category(best, gains[best])
        if advised:  # it is no feature
            kinds = tuple((name, kind) for name, kind in self._settings.kinds if name != best)
            self._settings = replace(self._settings, kinds=kinds)
        self._choose("entity", best, told, advised=advised)

    def _candidates(self) -> list[str]:
        fields = [
            column for column in self._others()
            if column.may_name_entity and column.n_values >= FEWEST_ENTITIES
        ]  # fmt: skip
        fields.sort(key=lambda column: -column.n_values)
        keys = {record.key for record in self._records}
        is_key = None not in keys and 1 < len(keys) <= len(self._records) / MANY
        return [KEY] * is_key + [column.name for column in fields[:MOST_TRIED]]

    def _is_better_category(self, name: str, gain: Gain) -> bool:
        """Tell whether a field says clearly more of the others as a category."""
        if name == KEY or self._settings.chosen_fields is not None:
            return False
        category, ignored = (
            self._likelihood(self._with_kind(name, kind)) for kind in (Kind.CATEGORY, Kind.IGNORED)
        )
        # Less the category itself, whose log-probability counts as well. A value that is not told
        # apart costs nothing.
        column = self._columns[name]
        cost = column.entropy if column.n_values <= self._told_apart() else 0.0
        return category - ignored + cost > gain.nats + gain.least

    def _told_apart(self) -> int:
        """Return how many values of a category the learner tells apart."""
        kinds = {c.name: c.kind.value for c in self._columns.values()} | dict(self._settings.kinds)
        n_categories = sum(kind == Kind.CATEGORY for kind in kinds.values())
        return most_values(max(n_categories, 1))

    def _with_kind(self, name: str, kind: Kind) -> Settings:
        if name == KEY or self._settings.chosen_fields is not None:
            return self._settings
        kinds = {**dict(self._settings.kinds), name: kind.value}
        return replace(self._settings, kinds=tuple(kinds.items()))

    def _likelihood(self, settings: Settings) -> float:
        """Return the mean log-likelihood of records but the lowest."""
        scores = self._trials.log(settings).scores.values()
        found = np.concatenate([each.log_likelihood for each in scores])
        return mean_of_best(found)

    def _transforms(self) -> None:
        """Try transforms of numbers that are skewed, together, but for those that do harm."""
        kinds = dict(self._settings.kinds)
        found = {
            column.name: name for column in self._features()
            if kinds.get(column.name, column.kind) == Kind.NUMBER
            and (name := best_transform(column)) is not None
        }  # fmt: skip
        apart = {
            field: self._gain_of(found, [each for each in found if each != field])
            for field in found if 1 < len(found) <= MOST_APART
        }  # fmt: skip
        # One that brings little still keeps a long tail from outranking faults.
        kept = {
            field: found[field] for field in found if field not in apart or not apart[field].harms
        }  # fmt: skip
        others = [f"{field} {apart[field]}" for field in found if field not in kept]
        if kept:
            gain = self._gain_of(kept, ())
            why = "; ".join([f"{gain} nats a record", *others])
            self._choose("transforms", tuple(kept.items()), why, advised=gain.pays)
        elif found:
            self._choose("transforms", tuple(found.items()), ", ".join(others), advised=False)

    def _gain_of(self, transforms: Mapping[str, str], others: Sequence[str]) -> Gain:
        """Return what transforms bring where some of them are there without the rest."""
        without, with_them = (
            replace(self._settings, transforms=tuple((name, transforms[name]) for name in names))
            for names in (others, transforms)
        )
        changed = [name for name in transforms if name not in others]
        what = f"transforms of {', '.join(changed)}"
        return self._trials.gain(without, with_them, what, len(changed))

    def _alone(self, field: str, kind: Kind) -> Settings:
        """Return settings under which a field is the only one."""
        kinds = () if kind == Kind.NUMBER else ((field, kind.value),)
        return replace(
            self._settings, features=(field,), kinds=kinds, transforms=(), directions=(), least=()
        )

    def _seasons(self) -> None:
        if span(self._times(self._records)) >= SEASON_DAYS * _DAY:
            seasons = replace(self._settings, seasons="UTC")
            gain = self._trials.gain(self._settings, seasons, "seasons = UTC")
            self._take("seasons", "UTC", gain)

    def _times(self, records: Sequence[KafkaRecord]) -> list[int]:
        """Return the times of records in milliseconds, in order."""
        times = [record.timestamp for record in records]
        if self._settings.time is not None:
            times = TimeReader(self._settings.time).read(records)
        return known(times)

    def _history(self) -> None:
        """Try a history. Its density stands beside the network's, as those of mixtures do.

        So it has to bring more than these, which records that tell nothing of the next have, too.
        """
        history = replace(self._settings, history=HISTORY)
        gain = self._trials.gain(self._settings, history, f"history = {HISTORY[0]}")
        if gain.pays:
            rest = self._trials.gain(self._with_mixtures(), history, "learner.mixtures = true")
            gain = gain if rest.pays else rest
        self._take("history", HISTORY, gain)

    def _with_mixtures(self) -> Settings:
        return replace(self._settings, learner=replace(self._settings.learner, mixtures=True))

    def _alarm_rate(self, alerts: float) -> None:
        """Choose the rate at which usual records alarm so often a day."""
        a_day = self._records_a_day()
        if a_day == 0.0:
            self._choose("alarm_rate", None, "the records have no times", advised=False)
            return
        rate = float(f"{min(max(alerts / a_day, 1e-6), 0.05):.1g}")
        self._choose("alarm_rate", rate, f"{alerts:g} of {a_day:,.0f} usual records a day")

    def _records_a_day(self) -> float:
        """Return how many records come in a day, 0 if they have no times.

        A partition without records here was not read: it has as many as another one.
        """
        rates = []
        for _, records in groupby(self._records, key=lambda record: record.partition):
            times = self._times(list(records))
            lasts = span(times)
            rates.append((len(times) - 1) * _DAY / lasts if lasts > 0.0 else 0.0)
        return float(np.mean(rates or [0.0])) * max(len(rates), self._partitions or 0)

    def _learner(self) -> None:
        """Tell what mixtures would bring: likelihoods are higher, alarms hardly better."""
        gain = self._trials.gain(self._settings, self._with_mixtures(), "learner.mixtures = true")
        why = f"{gain} nats a record; for likelihoods and forecasts; alarms rank hardly better"
        self._choose("learner.mixtures", True, why, advised=False)
