"""What a partition's pipeline is made of, as the settings say: a decoder and a scorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer
from faust_oslrau.learner.compile import Told, compile_scorer
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.scoring.transforms import LOWER_BOUNDS
from faust_oslrau.learner.state import Extent
from faust_oslrau.topics import KEY, FeatureDecoder, FieldChoice, Kind

from .snapshot import Snapshot

Value = TypeVar("Value", str, float)


def new_choice(settings: Settings) -> FieldChoice:
    """Return what chooses the fields of a partition; those that settings name are chosen."""
    tables = (settings.transforms, settings.directions, settings.least)
    kinds = {field: Kind.NUMBER.value for table in tables for field, _ in table}
    roles = {settings.entity: "the entity", settings.time: "the time"}
    never_chosen = {field: role for field, role in roles.items() if field not in (None, KEY)}
    return FieldChoice(settings.max_message_bytes, kinds | dict(settings.kinds), never_chosen)


def new_decoder(
    settings: Settings,
    fields: Sequence[str],
    n_categories: int = 0,
    counts: Sequence[str] = (),
    mixed: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> FeatureDecoder:
    """Return a partition's decoder, which rejects values outside the domain of a transform.

    The last `n_categories` fields are categories, and `counts` counts, whatever the settings say.
    Records chose the others of these, and fields that are `mixed`: as nobody said what they are, no
    record is refused for it.
    """
    named = dict(settings.kinds)
    kinds = named | dict.fromkeys(counts, Kind.COUNT)
    kinds |= dict.fromkeys(fields[len(fields) - n_categories :], Kind.CATEGORY)
    bounds = {field: LOWER_BOUNDS[name] for field, name in settings.transforms}
    bounds |= {f: LOWER_BOUNDS[kind] for f, kind in kinds.items() if kind == Kind.COUNT}
    return FeatureDecoder(
        fields, settings.max_message_bytes, bounds, kinds, texts,
        without_type=fields if settings.wrong_type == "missing" else mixed,
        lenient=[field for field in counts if field not in named],
    )  # fmt: skip


def new_scorer(
    settings: Settings, fields: Sequence[str], n_categories: int, counts: Sequence[str] = ()
) -> StreamScorer:
    """Return the scorer of a partition without a snapshot, the last fields being categories."""

    def by_column(named: Iterable[tuple[str, Value]]) -> dict[int, Value]:
        values = dict(named)
        return {at: values[field] for at, field in enumerate(fields) if field in values}

    return StreamScorer(
        OSLRAU(**settings.learner.parameters),
        settings.batch_size,
        settings.alarm_rate,
        learning=settings.learning,
        transforms=by_column([*settings.transforms, *((f, Kind.COUNT.value) for f in counts)]),
        directions=by_column(settings.directions),
        least=by_column(settings.least),
        n_categories=n_categories,
        max_entities=None if settings.entity is None else settings.max_entities,
        max_former_entities=settings.max_entities,
        history=settings.history,
        seasons=settings.seasons,
        adapt_after=settings.adapt_after,
        incidents=incident_parameters(settings),
        entity_events=settings.entity_events,
        silences=settings.silences,
        rates=settings.rate_seconds,
        rates_by=settings.rates_by,
        forecasting=settings.forecasts,
    )


def compile_pipeline(settings: Settings, told: Told | None = None) -> None:
    """Compile the kernels that pipelines with these settings need, or load them from their cache.

    Without it the first records would wait for the compiler.
    """
    often = replace(settings, learning=True, alarm_rate=0.1)
    if settings.chosen_fields is None:  # the first records may have any
        numbers = tuple(field for field, _ in settings.transforms)
        decoder = new_decoder(settings, (*numbers, "count", "category"), 1, ["count"])
    else:
        decoder = new_decoder(settings, settings.chosen_fields)
    scorer = new_scorer(often, decoder.fields, decoder.n_categories, decoder.counts)
    compile_scorer(scorer, len(decoder.fields) - decoder.n_categories, told)


def needs_times(settings: Settings) -> bool:
    """Return whether a setting has no effect on records without times."""
    return new_scorer(settings, settings.chosen_fields or (), 0).needs_times


def incident_parameters(settings: Settings) -> IncidentParameters | None:
    """Return when incidents open and close; None if none are wanted."""
    return IncidentParameters(**asdict(settings.incidents)) if settings.follows_incidents else None


def restored_scorer(snapshot: Snapshot, data: bytes | Extent, settings: Settings) -> StreamScorer:
    """Return the scorer of a snapshot, which must be one of its fields and settings."""
    scorer = StreamScorer.from_bytes(data)
    new = new_scorer(settings, snapshot.fields, snapshot.n_categories, snapshot.counts)
    if scorer.n_fields not in (None, len(snapshot.fields)):
        raise StateError(
            f"state: expected a scorer of the fields {snapshot.fields}, got {scorer.n_fields}"
        )
    if scorer.parameters != new.parameters:
        raise StateError(f"state: expected a scorer with {new.parameters}, got {scorer.parameters}")
    scorer.change_as(new)
    return scorer
