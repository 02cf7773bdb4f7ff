"""Panels that look alike: stats, lines, heat maps and tables on the chosen Prometheus.

In expressions `{selected` stands for the labels that the variables select, `{recorded` for those
that recorded series have, `{topics` for those of a worker's topics, and `{worker` for those of its
process.
"""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders import common as common_parts
from grafana_foundation_sdk.builders import dashboard as parts
from grafana_foundation_sdk.builders import heatmap as heatmaps
from grafana_foundation_sdk.builders import prometheus, timeseries
from grafana_foundation_sdk.builders import stat as stats
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from .limits import limit

DATASOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")

Panel = stats.Panel | timeseries.Panel | heatmaps.Panel | tables.Panel

_LABELS = {
    "selected": 'job=~"$job", instance=~"$instance", topic=~"$topic", partition=~"$partition"',
    "recorded": 'job=~"$job", topic=~"$topic", partition=~"$partition"',
    "topics": 'job=~"$job", instance=~"$instance", topic=~"$topic"',
    "worker": 'job=~"$job", instance=~"$instance"',
}


def expand(expression: str) -> str:
    """Put the selected labels into an expression."""
    for name, labels in _LABELS.items():
        expression = expression.replace("{" + name, "{" + labels)
    return expression


def stat(
    number: int,
    title: str,
    description: str,
    unit: str,
    expression: str,
    *,
    alert: str | None = None,
    none: str = "no data",
) -> stats.Panel:
    """Return one number, red beyond the limit of an alert."""
    return (
        stats.Panel()
        .id(number)
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(none)
        .height(4)
        .thresholds(_thresholds(alert))
        .reduce_options(common_parts.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common.BigValueColorMode.VALUE if alert else common.BigValueColorMode.NONE)
        .graph_mode(common.BigValueGraphMode.AREA)
        .with_target(_query("A", expression, title))
    )


def lines(
    number: int,
    title: str,
    description: str,
    unit: str,
    expressions: Mapping[str, str],
    *,
    alert: str | None = None,
    stacked: bool = False,
    none: str = "no data",
) -> timeseries.Panel:
    """Return lines over time by legend, with the limit of an alert as a dashed one.

    `none` is shown where there are no series.
    """
    panel = (
        timeseries.Panel()
        .id(number)
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(none)
        .height(8)
        .line_width(1)
        .fill_opacity(30 if stacked else 0)
        .show_points(common.VisibilityMode.AUTO)
        .stacking(_stacking(stacked))
        .thresholds(_thresholds(alert))
        .thresholds_style(common_parts.GraphThresholdsStyleConfig().mode(_line_style(alert)))
        .tooltip(common_parts.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )
    for letter, (legend, expression) in zip("ABCDEFGH", expressions.items(), strict=False):
        panel.with_target(_query(letter, expression, legend))
    return panel


def heatmap(
    number: int, title: str, description: str, unit: str, expression: str
) -> heatmaps.Panel:
    """Return the buckets of a histogram over time."""
    return (
        heatmaps.Panel()
        .id(number)
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .height(8)
        .y_axis(heatmaps.YAxisConfig().unit(unit))
        .color(
            heatmaps.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Spectral")
            .steps(64)
        )
        .with_target(_query("A", expression, "{{le}}").format(PromQueryFormat.HEATMAP))
    )


def table(
    number: int, title: str, description: str, expressions: Mapping[str, str]
) -> tables.Panel:
    """Return one line a partition, and a column by name for each expression."""
    panel = (
        tables.Panel()
        .id(number)
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("short")
        .height(8)
    )
    names = {"topic": "Topic", "partition": "Partition"}
    for letter, (name, expression) in zip("ABCDEFGH", expressions.items(), strict=False):
        names[f"Value #{letter}"] = name
        query = _query(letter, f"sum by (topic, partition) ({expression})", name)
        panel.with_target(query.instant().format(PromQueryFormat.TABLE))
    options = {"excludeByName": {"Time": True}, "renameByName": names}
    return panel.transformations(
        [
            dashboard.DataTransformerConfig(id_val="merge", options={}),
            dashboard.DataTransformerConfig(id_val="organize", options=options),
        ]
    )


def _query(letter: str, expression: str, legend: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(letter)
        .datasource(DATASOURCE)
        .expr(expand(expression))
        .legend_format(legend)
        .range()
    )


def _thresholds(alert: str | None) -> parts.ThresholdsConfig:
    # Grafana takes the first step for minus infinity; the schema wants a number nonetheless.
    steps = [dashboard.Threshold(value=0, color="green")]
    if alert is not None:
        steps.append(dashboard.Threshold(value=limit(alert), color="red"))
    return parts.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _line_style(alert: str | None) -> common.GraphThresholdsStyleMode:
    styles = common.GraphThresholdsStyleMode
    return styles.DASHED if alert else styles.OFF


def _stacking(stacked: bool) -> common_parts.StackingConfig:
    modes = common.StackingMode
    return common_parts.StackingConfig().mode(modes.NORMAL if stacked else modes.NONE)
