"""The page ``docs/comparison.md``: the paper's Tables 1 to 3 beside the results of this project.

``python -m benchmarks comparison`` writes it from the results of ``baselines``, ``large`` and
``detection``; it measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import click

from .datasets import PAPER_SETS
from .opponents.sizes import MOST_HELD_OUT, MOST_SEEN
from .paper import LARGE, PEERS, by_method
from .plan import ROOT
from .report import FAR, far_records, markdown, prose

PAGE = ROOT / "docs" / "comparison.md"
PLOT = ROOT / "docs" / "images" / "comparison.png"

SAME = 0.1
"""Nats up to which two figures count as the same."""

WORSE = 1.0
"""Nats from which on a method counts as worse here than in the paper."""

FLOW = "RealNVP, offline"

KINEMATICS = 8
"""Variables of that set."""


Figures = Mapping[tuple[str, str], Mapping[str, Any]]
"""What ``baselines`` found, by data set and method."""


def run(out: Path) -> None:
    """Write docs/comparison.md, and its plot, from the results of other benchmarks."""
    from .plots import plot_comparison

    PAGE.write_text(page(out))
    honest = {key: figure["honest"]["mean"] for key, figure in folds(out).items()}
    plot_comparison(PLOT, honest, {method: peer.paper for method, peer in by_method().items()})
    click.echo(f"{PAGE.relative_to(ROOT)} and {PLOT.relative_to(ROOT)} are written.")


def page(results: Path) -> str:
    """Return the page as Markdown."""
    figures = folds(results)
    own = today(figures)
    blocks = [
        "# Beside other densities and detectors",
        prose(INTRODUCTION),
        "## The paper's methods on its small sets (Table 1)",
        prose(TABLE_1),
        markdown([*paper_rows(figures)]),
        *map(prose, differences(figures)),
        "## Today's methods on the same sets",
        prose(TODAY),
        markdown([*today_rows(figures)]),
        prose(best(figures)),
        *capped(figures),
        *far_records(
            {key: each["honest"]["mean"] for key, each in figures.items() if key[1] in own}
        ),
        "![Log-likelihoods by data set](images/comparison.png)",
        "Dots are the honest figures, rings the paper's, the line a single Gaussian.",
        "## Each record scored before it is learned",
        prose(STREAMS),
        markdown([*stream_rows(read(results, "baselines")["streams"])]),
    ]
    for name, section in SECTIONS.items():
        if (results / f"{name}.md").is_file():
            blocks += [
                section.title,
                prose(section.text),
                markdown([*section.rows(read(results, name))]),
            ]
    return "\n\n".join(blocks) + "\n"


INTRODUCTION = """\
`python -m benchmarks comparison` writes this page from the results of `baselines`, `large` and
`detection` ([benchmarks](../benchmarks/README.md)). The paper is Hsu, Kalra and Poupart (2017).
Log-likelihoods are in nats for each record."""

TABLE_1 = """\
Each cell is *the paper's figure*, ours native, ours honest, a dash without one. Native figures are
the models' own; where values repeat or columns depend on each other exactly, they have no upper
bound. Honest ones have variances of at least 1e-4."""

TODAY = """\
Honest figures. *Default* and *mixtures* are this project's; they see each record once, as do
*RealNVP, online* and the *precision matrix*, the others as often as they need. On the smallest
sets, tenths of a nat are chance."""

STREAMS = """\
Honest figures, and in brackets those of the best 99 % of the records."""

LARGE_SETS = """\
Log-likelihoods are the paper's: the sets are not part of this project. *Ours* are seconds of
learning, nodes and memory of `OSLRAU()`, which has a budget of 2,000 nodes and does not stop early,
on generated stand-ins ([large](../benchmarks/results/large.md)). They stand beside the paper's
oSLRAU without an early stop, on another machine and without a budget."""

ANOMALIES = """\
Area under the ROC curve and average precision, means over streams
(`python -m benchmarks detection`)."""


def read(results: Path, name: str) -> Any:
    """Return the figures of a benchmark, which the last line of its results holds."""
    last = (results / f"{name}.md").read_text().splitlines()[-1]
    return json.loads(last)["figures"]


def folds(results: Path) -> Figures:
    return {(f["dataset"], f["method"]): f for f in read(results, "baselines")["folds"]}


def paper_rows(figures: Figures) -> Iterator[dict[str, str]]:
    for name, peer in PEERS.items():
        cells = (
            f"*{peer.paper.get(each, '-')}*, {found(figures, each, peer.method)}"
            for each in PAPER_SETS
        )
        yield {"": name} | dict(zip(PAPER_SETS, cells, strict=True))


def found(figures: Figures, dataset: str, method: str) -> str:
    """Write a method's native and honest figures."""
    if (dataset, method) not in figures:
        return "-"
    figure = figures[dataset, method]
    return ", ".join(number(figure[kind]["mean"]) for kind in ("native", "honest"))


def number(value: float) -> str:
    return f"{value:.1e}" if abs(value) >= 1e4 else f"{value:.2f}"


def today_rows(figures: Figures) -> Iterator[dict[str, str]]:
    for method in today(figures):
        yield {"": method} | {each: honest(figures, each, method) for each in PAPER_SETS}


def today(figures: Figures) -> list[str]:
    """Name the methods that are not the paper's opponents."""
    papers = {*by_method()} - {"oSLRAU"}
    return [method for method in dict.fromkeys(name for _, name in figures) if method not in papers]


def capped(figures: Figures) -> Iterator[str]:
    """Name the sets on which training ends with its first epoch."""
    rows = {d: f["learn_rate"] * f["learn_seconds"] for (d, m), f in figures.items() if m == FLOW}
    sets = [each for each, learned in rows.items() if learned >= MOST_SEEN + MOST_HELD_OUT]
    if sets:
        yield (
            f"*{FLOW}* is trained until its loss on held-out rows stops falling, or until the end "
            f"of the epoch in which it has seen {MOST_SEEN:,} rows: on {', '.join(sets)} the first."
        )


def honest(figures: Figures, dataset: str, method: str) -> str:
    if (dataset, method) not in figures:
        return "-"
    mean = number(figures[dataset, method]["honest"]["mean"])
    return f"**{mean}**" if method == winner(figures, dataset) else mean


def winner(figures: Figures, dataset: str) -> str:
    own = {m: f["honest"]["mean"] for (d, m), f in figures.items() if d == dataset}
    return max(own, key=lambda method: own[method], default="")


def best(figures: Figures) -> str:
    """Say which method has the highest honest figure on how many sets."""
    winners = [winner(figures, each) for each in PAPER_SETS if winner(figures, each)]
    counts = {method: winners.count(method) for method in dict.fromkeys(winners)}
    said = (f"{method} on {count}" for method, count in sorted(counts.items(), key=lambda i: -i[1]))
    return (
        "The highest figure, the paper's methods included, is in bold: "
        f"{', '.join(said)} of {len(winners)} sets."
    )


def differences(figures: Figures) -> Iterator[str]:
    """Say what differs from the paper, and why, by the figures."""
    yield (
        "The paper's figures have no floor. Where ours without and with one are far apart, values "
        "repeat."
    )
    yield from far(figures)
    yield from not_run(figures)
    yield from below(figures)
    yield from like_one_gaussian(figures)
    bound = -KINEMATICS * log(sqrt(12.0))
    ours = figures.get(("kinematics", PEERS["SRBM"].method))
    yield (
        f"*SRBM on kinematics.* The paper's {PEERS['SRBM'].paper['kinematics']} cannot be: each of "
        f"the {KINEMATICS} variables is uniform, with a density of 1/√12, and they are nearly "
        f"independent, so the best density has {bound:.2f}, the best here "
        f"{number(highest(figures, 'kinematics'))}. An estimate of a normalising constant that is "
        "too small raises every record's."
        + (f" Ours is {number(ours['honest']['mean'])}." if ours else "")
    )


def far(figures: Figures) -> Iterator[str]:
    """Name the cells that a few records decide, and those of them without the paper's figure."""
    found = {
        (each, name): figures[each, peer.method]["native"]["mean"]
        for name, peer in PEERS.items()
        for each in PAPER_SETS
        if (each, peer.method) in figures
    }
    alone = [
        f"{name} on {each}"
        for (each, name), mean in found.items()
        if mean < FAR and each not in PEERS[name].paper
    ]
    said = f" The paper has no figure for {', '.join(alone)}." if alone else ""
    yield from (remark + said for remark in far_records(found))


def not_run(figures: Figures) -> Iterator[str]:
    """Name the sets that the results do not have."""
    missing = [each for each in PAPER_SETS if (each, "oSLRAU") not in figures]
    if missing:
        yield f"*Not run here:* {', '.join(missing)}. `make bench ARGS=baselines` runs all sets."


def below(figures: Figures) -> Iterator[str]:
    """Name the methods that are worse here than in the paper, and the sets."""
    worse = {
        name: [
            each
            for each, value in peer.paper.items()
            if (each, peer.method) in figures
            and figures[each, peer.method]["native"]["mean"] < float(value.split()[0]) - WORSE
            and (name, each) != ("SRBM", "kinematics")
        ]
        for name, peer in PEERS.items()
    }
    said = "; ".join(f"{name} on {', '.join(sets)}" for name, sets in worse.items() if sets)
    if said:
        yield (
            f"*Worse here than in the paper*, by more than {WORSE:.0f} nat: {said}. Ours have one "
            "fixed setting for all sets."
        )


def like_one_gaussian(figures: Figures) -> Iterator[str]:
    """Name the sets on which the paper's online EM is no better than one Gaussian."""
    same = [
        each
        for each, value in PEERS["oEM (GMM)"].paper.items()
        if (each, "Gaussian") in figures
        and abs(float(value.split()[0]) - figures[each, "Gaussian"]["honest"]["mean"]) < SAME
    ]
    if same:
        yield (
            f"*oEM (GMM).* On {', '.join(same)} the paper's figure is that of a single Gaussian to "
            f"{SAME} nats. Here its components begin at different records."
        )


def highest(figures: Figures, dataset: str) -> float:
    return max(float(f["honest"]["mean"]) for (d, _), f in figures.items() if d == dataset)


def stream_rows(streams: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    cells = {
        (s["dataset"], s["method"]): f"{number(s['mean'])} ({number(s['best'])})" for s in streams
    }
    for method in dict.fromkeys(stream["method"] for stream in streams):
        yield {"": method} | {each: cells.get((each, method), "-") for each in PAPER_SETS}


def large_rows(passes: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    for own in passes:
        paper = LARGE[own["dataset"]]
        yield {
            "set": own["dataset"],
            "records x variables": f"{own['records']:,} x {own['variables']}",
            "paper: random": paper.random,
            "oSLRAU": paper.oslrau,
            "RealNVP online": paper.online_flow,
            "RealNVP offline": paper.offline_flow,
            "early stop, s": paper.early_seconds,
            "early stop, nodes": paper.early_nodes,
            "oSLRAU, s": paper.seconds,
            "oSLRAU, nodes": paper.nodes,
            "ours, s": f"{own['learn_seconds']:.0f}",
            "ours, nodes": f"{own['nodes']:,}",
            "memory, MB": f"{own['memory'] / 1e6:,.0f}",
        }


def anomaly_rows(figures: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, str]]:
    streams = figures["streams"]
    parts = list(dict.fromkeys(stream["part"] for stream in streams))
    for method in dict.fromkeys(stream["method"] for stream in streams):
        yield {"": method} | {part: mean_of(streams, part, method) for part in parts}


def mean_of(streams: list[dict[str, Any]], part: str, method: str) -> str:
    own = [s for s in streams if (s["part"], s["method"]) == (part, method)]
    own = [s for s in own if s["area"] == s["area"]]  # NaN without anomalies
    return " / ".join(
        f"{sum(s[figure] for s in own) / len(own):.3f}" for figure in ("area", "precision")
    )


class Section(NamedTuple):
    """What the page says about the results of one benchmark: text, and the rows of a table."""

    title: str
    text: str
    rows: Callable[[Any], Iterator[dict[str, str]]]


SECTIONS = {
    "large": Section("## The paper's large sets (Tables 2 and 3)", LARGE_SETS, large_rows),
    "detection": Section("## Anomalies", ANOMALIES, anomaly_rows),
}
"""Those of benchmarks that have been run."""
