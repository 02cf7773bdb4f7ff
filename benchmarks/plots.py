"""Figures as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from faust_oslrau.learner import Network
from faust_oslrau.learner.network.layout import LEAF, SUM

from .components import components_of
from .crossval import Summary
from .datasets import Array

DPI = 110


def save(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.tight_layout()
    plt.savefig(path, dpi=DPI)
    plt.close()


def plot_structures(path: Path, networks: Mapping[int, Network]) -> None:
    """Draw each network as a tree."""
    _, axes = plt.subplots(len(networks), 1, figsize=(12, 4 * len(networks)))
    for ax, (n, network) in zip(axes, networks.items(), strict=True):
        ax.set_title(f"after {n} records: {network.n_nodes} nodes")
        ax.axis("off")
        draw_tree(ax, network, network.root, 0, [0.0])
    save(path)


def draw_tree(ax: Axes, network: Network, node: int, depth: int, next_leaf: list[float]) -> float:
    """Draw a node above its children and return its place; leaves take one place each."""
    kind = network.nodes[node]["kind"]
    label = (
        f"$x_{network.scope(node)[0] + 1}$" if kind == LEAF else "+" if kind == SUM else r"$\times$"
    )
    places = [
        draw_tree(ax, network, child, depth + 1, next_leaf) for child, _ in network.children(node)
    ]
    if places:
        x = float(np.mean(places))
    else:
        x = next_leaf[0]
        next_leaf[0] += 1.0
    for place in places:
        ax.plot([x, place], [-depth, -depth - 1], color="0.6", linewidth=0.8, zorder=1)
    circle = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "0.3", "linewidth": 0.8}
    ax.text(x, -depth, label, ha="center", va="center", fontsize=8, bbox=circle, zorder=2)
    return x


def plot_components(path: Path, X: Array, networks: Mapping[int, Network]) -> None:
    """Draw the data along x1 and x2 and the learned components, two deviations wide."""
    _, axes = plt.subplots(1, len(networks), figsize=(6 * len(networks), 5), sharey=True)
    for ax, (n, network) in zip(axes, networks.items(), strict=True):
        ax.set(title=f"after {n} records", xlabel="$x_1$", ylabel="$x_2$")
        ax.plot(X[:n, 0], X[:n, 1], ".", markersize=3, color="tab:blue")
        for component in components_of(network, (0, 1)):
            width, height = (4 * np.sqrt(component.variances[v]) for v in (0, 1))
            centre = component.means[0], component.means[1]
            ax.add_patch(Ellipse(centre, width, height, fill=False, color="tab:red"))
    save(path)


def plot_study(path: Path, parameter: str, summaries: Sequence[Summary]) -> None:
    """Honest log-likelihood with its standard error, and nodes, against one parameter."""
    names = list(dict.fromkeys(summary.dataset for summary in summaries))
    _, axes = plt.subplots(
        2, len(names), figsize=(2.6 * len(names) + 1, 5), sharex=True, squeeze=False
    )
    for (top, bottom), name in zip(axes.T, names, strict=True):
        own = [summary for summary in summaries if summary.dataset == name]
        values = [float(summary.method) for summary in own]
        errors = [summary.honest.error or 0.0 for summary in own]
        top.errorbar(values, [s.honest.mean for s in own], errors, marker="o", markersize=3)
        bottom.plot(values, [s.nodes for s in own], marker="o", markersize=3)
        bottom.set(yscale="log", xlabel=parameter)
        top.set_title(name)
    axes[0, 0].set_ylabel("log-likelihood (honest)")
    axes[1, 0].set_ylabel("nodes")
    save(path)


def plot_costs(
    path: Path,
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    unit: str = "ns per point and leaf",
) -> None:
    """Draw one panel for each quantity on the x axis, one line for each operation."""
    _, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4), sharey=True)
    for ax, (quantity, lines) in zip(axes, panels.items(), strict=True):
        for label, points in lines.items():
            ax.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        ax.set(xlabel=quantity, yscale="log")
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    axes[0].set_ylabel(unit)
    save(path)


def plot_latency(path: Path, found: Sequence[Mapping[str, Any]]) -> None:
    """Draw median and 99 % quantile of each reader against the load."""
    _, ax = plt.subplots(figsize=(6.5, 4))
    readers = list(dict.fromkeys(each["reader"] for each in found))
    for number, reader in enumerate(readers):
        own = [each for each in found if each["reader"] == reader]
        loads = [each["load"] for each in own]
        for quantile, line in (("p50", "-"), ("p99", "--")):
            values = [each[quantile] for each in own]
            label = f"{reader}, {quantile}"
            ax.plot(loads, values, line, color=f"C{number}", marker="o", markersize=3, label=label)
    ax.set(xlabel="records per second", ylabel="milliseconds", yscale="log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    save(path)


def plot_rates(path: Path, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw realised over nominal alarm rates against the nominal ones."""
    _, ax = plt.subplots(figsize=(7, 4.5))
    ax.axhline(1.0, color="0.3", linewidth=0.8)
    ax.axhspan(0.85, 1.15, color="0.92")
    for label, points in curves.items():
        ax.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
    ax.set(xscale="log", xlabel="nominal alarm rate", ylabel="realised / nominal", ylim=(0, 2))
    ax.legend(fontsize=8)
    save(path)


def plot_gains(path: Path, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw the gain over independent Gaussians against the records learned."""
    _, axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 4), squeeze=False)
    for ax, (label, points) in zip(axes[0], curves.items(), strict=True):
        ax.plot(*zip(*points, strict=True), marker="o", markersize=2)
        ax.axhline(0.95 * points[-1][1], color="0.5", linewidth=0.8, linestyle="--")
        ax.set(xscale="log", xlabel="records", ylabel="gain, nats per record", title=label)
        ax.set_ylim(bottom=min(0.0, points[2][1]))
    save(path)


def plot_drift(
    path: Path,
    courses: Sequence[tuple[str, str, NDArray[np.float64], NDArray[np.float64], Sequence[int]]],
    window: int,
) -> None:
    """Draw log-likelihood and alarm rate over time, a column for each stream."""
    names = list(dict.fromkeys(course[0] for course in courses))
    _, axes = plt.subplots(2, len(names), figsize=(4.5 * len(names), 6), sharex=True)
    for (top, bottom), name in zip(axes.T, names, strict=True):
        top.set_title(name)
        for i, (_, label, levels, alarms, signals) in enumerate(
            course for course in courses if course[0] == name
        ):
            time = (np.arange(len(levels)) + 0.5) * window
            top.plot(time, levels, linewidth=0.9, label=label)
            bottom.plot(time, np.maximum(alarms, 1e-3), linewidth=0.9)
            bottom.plot(signals, [2e-3 * 1.3**i] * len(signals), "^", color=f"C{i}", markersize=4)
        low = np.quantile([c[2][2:] for c in courses if c[0] == name], 0.02)
        top.set_ylim(bottom=low - 1)
        bottom.set(yscale="log", xlabel="records")
    axes[0, 0].set_ylabel("log-likelihood")
    axes[1, 0].set_ylabel("share of p-values up to 0.01 (^: drift signal)")
    axes[0, -1].legend(fontsize=8)
    save(path)


def plot_ranking(path: Path, means: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Draw the mean area and precision of each method as bars, a column for each part."""
    _, axes = plt.subplots(2, len(means), figsize=(3.4 * len(means), 5), sharey="row")
    for column, (part, methods) in zip(axes.T, means.items(), strict=True):
        column[0].set_title(part, fontsize=9)
        for i, ax in enumerate(column):
            ax.bar(list(methods), [figures[i] for figures in methods.values()], color="tab:blue")
        column[0].set(ylim=(0.5, 1.0), xticks=[])
        column[1].tick_params(axis="x", rotation=90, labelsize=8)
    axes[0, 0].set_ylabel("area under the ROC curve")
    axes[1, 0].set_ylabel("average precision")
    save(path)


def plot_comparison(
    path: Path,
    means: Mapping[tuple[str, str], float],
    papers: Mapping[str, Mapping[str, str]],
) -> None:
    """Draw each method's honest log-likelihood by data set, and the paper's as rings.

    What is below a single Gaussian by more than the best is above it is drawn at the left edge.
    """
    names, methods = (list(dict.fromkeys(key[i] for key in means)) for i in (0, 1))
    _, axes = plt.subplots(1, len(names), figsize=(2.0 * len(names) + 2, 5.5), sharey=True)
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        own = {method: mean for (each, method), mean in means.items() if each == name}
        high, middle = max(own.values()), own["Gaussian"]
        low = middle - max(high - middle, 1.0)
        quoted = {m: float(paper[name].split()[0]) for m, paper in papers.items() if name in paper}
        places = {method: i for i, method in enumerate(reversed(methods))}
        for values, style in ((own, "C0o"), (quoted, "C1o")):
            x = np.maximum([*values.values()], low)
            face = None if style == "C0o" else "none"
            ax.plot(x, [places[m] for m in values], style, markersize=5, markerfacecolor=face)
        ax.axvline(middle, color="0.7", linewidth=0.8)
        ax.set(title=name, yticks=range(len(methods)), yticklabels=reversed(methods))
        ax.grid(axis="y", alpha=0.3)
    save(path)
