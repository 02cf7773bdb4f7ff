"""What both dashboards have in common: variables, annotations, links."""

from __future__ import annotations

from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as parts
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard

from .panels import DATASOURCE, Panel, expand

_WIDTH = 24
_TITLES = {"oslrau-pipeline": "Pipeline", "oslrau-model": "Model"}

# A process that restarts continues its series, or begins a new one with another address.
_RESTARTS = (
    "changes(process_start_time_seconds{worker}[1m]) > 0"
    " or (process_start_time_seconds{worker} unless process_start_time_seconds{worker} offset 1m)"
)
# Networks below their node budget change all the time: a burst is four times the hour before.
_BURSTS = (
    "sum by (topic, partition) (rate(oslrau_structure_changes_total{selected}[5m]))"
    " > 4 * sum by (topic, partition)"
    " (rate(oslrau_structure_changes_total{selected}[1h] offset 5m))"
)
_DRIFTS = "sum by (topic, partition) (increase(oslrau_drift_events_total{selected}[1m])) > 0"


class Row(NamedTuple):
    """A row with a title, and its panels in columns."""

    number: int
    title: str
    columns: int
    panels: tuple[Panel, ...]


def row(number: int, title: str, columns: int, *panels: Panel) -> Row:
    """Return a row; panels beyond the columns go below."""
    return Row(number, title, columns, panels)


def board(uid: str, description: str, page: str | None, *rows: Row) -> parts.Dashboard:
    """Return a dashboard; with the address of the workers' pages, it links to their incidents."""
    dashboard = _empty(uid, description)
    if page is not None:
        dashboard.link(_page_link(page))
    for entry in rows:
        dashboard.with_row(parts.Row(entry.title).id(entry.number))
        for panel in entry.panels:
            dashboard.with_panel(panel.span(_WIDTH // entry.columns))
    return dashboard


def _empty(uid: str, description: str) -> parts.Dashboard:
    (other,) = set(_TITLES) - {uid}
    return (
        parts.Dashboard(f"faust-oslrau: {_TITLES[uid]}")
        .uid(uid)
        .description(description)
        .tags(["faust-oslrau"])
        .timezone("browser")
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .variables(_variables())
        .annotations(
            [
                _annotation("Worker starts", _RESTARTS, "blue"),
                _annotation("Structure bursts", _BURSTS, "purple"),
                _annotation("Drifts", _DRIFTS, "orange"),
            ]
        )
        .link(_link(other))
    )


def _link(uid: str) -> parts.DashboardLink:
    return (
        parts.DashboardLink(_TITLES[uid])
        .type(dashboard.DashboardLinkType.LINK)
        .url(f"/d/{uid}")
        .icon("dashboard")
        .tooltip(f"{_TITLES[uid]}, same time and selection")
        .keep_time(True)
        .include_vars(True)
    )


def _page_link(address: str) -> parts.DashboardLink:
    return (
        parts.DashboardLink("Incidents")
        .type(dashboard.DashboardLinkType.LINK)
        .url(address)
        .icon("external link")
        .tooltip("The last incidents, on the workers' pages")
        .target_blank(True)
    )


def _annotation(name: str, expression: str, colour: str) -> parts.AnnotationQuery:
    return (
        parts.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(colour)
        .expr(expand(expression))
    )


def _variables() -> list[Builder[dashboard.VariableModel]]:
    return [
        parts.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        _labels("job", "Job", "oslrau_records_total"),
        _labels("instance", "Worker", 'up{job=~"$job"}'),
        _labels("topic", "Topic", 'oslrau_records_total{job=~"$job"}'),
        _labels("partition", "Partition", 'oslrau_records_total{job=~"$job", topic=~"$topic"}'),
    ]


def _labels(label: str, title: str, series: str) -> parts.QueryVariable:
    return (
        parts.QueryVariable(label)
        .label(title)
        .datasource(DATASOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.NUMERICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(dashboard.VariableOption(text="All", value="$__all", selected=True))
    )
