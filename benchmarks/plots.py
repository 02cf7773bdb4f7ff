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

from faust_oslrau.learner import Network
from faust_oslrau.learner._layout import LEAF, SUM

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
