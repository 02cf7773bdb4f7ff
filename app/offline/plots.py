"""Draws comparisons and evaluations; requires matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faust_oslrau.app.errors import OslrauError

from .comparison import GROUPS, Comparison
from .evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

_STRETCHES = 50
_DOTS_PER_INCH = 110
_LOWEST_P_VALUE = 1e-9
_COLOURS = {"both": "tab:gray", "only_a": "tab:blue", "only_b": "tab:orange"}
_LABELS = {"both": "in both", "only_a": "only in A", "only_b": "only in B"}


class PlotError(OslrauError):
    """A plot cannot be drawn or written."""


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written, before long work begins.

    Raises
    ------
    PlotError
        The name has another ending, the folder is missing, or matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise PlotError(f"{path}: expected a name that ends in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise PlotError(f"{path}: expected a folder {path.parent}, there is none")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PlotError("a plot needs matplotlib: pip install 'faust-oslrau[plot]'") from None


def plot_comparison(found: Comparison, path: Path) -> None:
    """Draw mean log-likelihoods, their difference and the alarms along the log.

    Raises
    ------
    PlotError
        The file cannot be written.
    """
    stretches = found.stretches(_STRETCHES)
    place = 100 * (np.arange(_STRETCHES) + 0.5) / _STRETCHES
    figure = _figure(8, 7.5)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    means = np.array([stretch.log_likelihood for stretch in stretches])
    for column, (name, log) in enumerate(zip("AB", found.logs, strict=True)):
        top.plot(place, means[:, column], label=f"{name}: {log.name}")
    middle.axhline(0.0, color="0.6", linewidth=0.8)
    middle.plot(place, means[:, 1] - means[:, 0], color="black")
    below = np.zeros(_STRETCHES)
    for group in GROUPS:
        counts = np.array([stretch.alarms[group] for stretch in stretches])
        bottom.bar(
            place, counts, 100 / _STRETCHES, below, color=_COLOURS[group], label=_LABELS[group]
        )
        below += counts
    top.set_ylabel("log-likelihood, nats")
    middle.set_ylabel("B - A, nats")
    bottom.set(ylabel="alarms", xlabel="position in the log, %")
    for axes in (top, bottom):
        axes.legend(fontsize=8)
    _save(figure, path)


def plot_evaluation(found: Sequence[Evaluation], path: Path) -> None:
    """Draw ROC curves, precision against recall, and p-values along the log beside the faults.

    Raises
    ------
    PlotError
        The file cannot be written.
    """
    figure = _figure(9, 4.5 + 1.8 * len(found))
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=(2.5, len(found)))
    upper, lower = parts[:, 0]
    roc, precision = upper.subplots(1, 2)
    for each in found:
        name, curve = each.log.name, each.curve
        area, mean = f"{name}: {curve.area_under_roc:.3f}", f"{name}: {curve.average_precision:.3f}"
        roc.plot(curve.false_alarm_rate, curve.recall, label=area)
        precision.step(curve.recall[1:], curve.precision[1:], where="pre", label=mean)
    roc.plot([0, 1], [0, 1], color="0.8", linewidth=0.8)
    roc.set(title="ROC curve, area", xlabel="share of other records", ylabel="recall")
    precision.set(title="average precision", xlabel="recall", ylabel="precision", ylim=(0, 1.05))
    for axes in (roc, precision):
        axes.legend(fontsize=8)
    rows = lower.subplots(len(found), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, each in zip(rows, found, strict=True):
        _draw_p_values(axes, each)
    rows[0].set_yscale("log")
    rows[0].invert_yaxis()  # of all rows
    rows[-1].set_xlabel("record (red: faults, black: alarms)")
    _save(figure, path)


def _draw_p_values(axes: Axes, found: Evaluation) -> None:
    """Draw each record's p-value, one partition after the other, with faults shaded."""
    first = 0
    faults: list[tuple[float, int]] = []
    for partition, scores in found.log.scores.items():
        p_value = np.maximum(scores.p_value, _LOWEST_P_VALUE)
        place, alarm = first + scores.offset, scores.is_alarm
        axes.plot(place, p_value, ",", color="tab:blue", rasterized=True)
        axes.plot(place[alarm], p_value[alarm], ".", color="black", markersize=5)
        of_partition = (fault for fault in found.faults if fault.partition == partition)
        faults += [(first + fault.offset - 0.5, fault.records) for fault in of_partition]
        first += int(scores.offset.max(initial=0)) + 1
    whole_height = axes.get_xaxis_transform()
    axes.broken_barh(faults, (0, 1), transform=whole_height, color="tab:red", alpha=0.25)
    axes.axhline(found.log.settings.alarm_rate, color="0.3", linewidth=0.8, linestyle="--")
    axes.set_ylabel("p-value")
    axes.set_title(found.log.name, fontsize=9)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    options: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    try:
        figure.savefig(path, dpi=_DOTS_PER_INCH, **options)
    except OSError as error:
        raise PlotError(f"{path}: {error.strerror}") from None
