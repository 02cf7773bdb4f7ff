"""The dashboards and rules as the tests read them: panels, alerts, expressions."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docker" / "prometheus" / "rules.yml"
DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))

# What Grafana puts in for its variables, as with "All" chosen. The window has to hold two scrapes.
_VARIABLES = {
    "$job": ".*", "$instance": ".*", "$topic": ".*", "$partition": ".*", "$__rate_interval": "10s",
}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels that show something."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def rules(text: str | None = None) -> list[dict[str, Any]]:
    groups = yaml.safe_load(text or RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def filled_in(expression: str) -> str:
    """Return an expression with Grafana's variables replaced by values."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def expressions(of: str) -> dict[str, str]:
    """Return the expressions of all panels, annotations or rules, by what names them."""
    if of == "rules":
        return {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules()}
    found = {}
    for path in DASHBOARDS:
        dashboard = load(path)
        if of == "annotations":
            queries = [(each["name"], each) for each in dashboard["annotations"]["list"]]
        else:
            targets = [
                (panel["id"], each) for panel in panels(dashboard) for each in panel["targets"]
            ]
            queries = [(f"{number}/{each['refId']}", each) for number, each in targets]
        found |= {f"{path.stem}/{name}": filled_in(query["expr"]) for name, query in queries}
    return found


def hurried(text: str) -> str:
    """Return rules or an expression with windows of seconds, so that a test need not wait."""
    text = re.sub(r"\[\d+[mhd]\]", "[10s]", text)
    text = re.sub(r"offset \d+[mh]", "offset 3s", text)
    text = re.sub(r"interval: \d+[smh]", "interval: 1s", text)
    return re.sub(r"for: \d+[smh]", "for: 5s", text)  # a busy machine misses a scrape or two


def operands(expression: Any) -> Iterator[Any]:
    """Yield the parts of an expression that comparisons and set operators hold together."""
    if isinstance(expression, promql_parser.ParenExpr):
        yield from operands(expression.expr)
    elif isinstance(expression, promql_parser.BinaryExpr) and _filters(expression):
        yield from operands(expression.lhs)
        yield from operands(expression.rhs)
    elif not isinstance(expression, promql_parser.NumberLiteral):
        yield expression


def _filters(expression: Any) -> bool:
    return str(expression.op) in {">", "<", ">=", "<=", "==", "!=", "and", "or", "unless"}


def metric_names(expression: str) -> set[str]:
    """Return the names of the series that an expression reads."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(node.name)
        elif isinstance(node, promql_parser.MatrixSelector):
            found.add(node.vector_selector.name)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
