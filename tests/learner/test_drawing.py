"""The structure drawn: every node and edge once, in the fields' own names and units."""

import networkx
import numpy as np
import pytest
from interpreter import needs_compiler
from pytest import approx
from streams import clusters

from faust_oslrau.learner import OSLRAU, InvalidInputError

NAMES = ["speed", "load", 'odd "name"', "heat"]


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "mixtures"])
def model(request):
    rows = clusters(1, 600, 4) * 1000 + 5000
    return OSLRAU(min_count=20, mixtures=request.param).partial_fit(rows, batch_size=100)


def test_the_graph_has_every_node_and_edge_and_scopes_are_complete_and_decomposable(model):
    graph = model.to_networkx(NAMES)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (model.n_nodes_, model.n_edges_)
    assert networkx.is_arborescence(graph)
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert {kind: kinds.count(kind) for kind in model.node_counts_} == model.node_counts_
    (root,) = [node for node, degree in graph.in_degree() if degree == 0]
    assert graph.nodes[root]["scope"] == NAMES
    for node, data in graph.nodes(data=True):
        scopes = [graph.nodes[child]["scope"] for child in graph.successors(node)]
        if data["kind"] == "sum":
            assert all(scope == data["scope"] for scope in scopes)
            weights = [weight for _, _, weight in graph.out_edges(node, data="weight")]
            assert sum(weights) == approx(1)
        elif data["kind"] == "product":
            assert sorted(name for scope in scopes for name in scope) == sorted(data["scope"])


def test_dot_names_fields_in_their_units_and_refuses_too_few_names(model):
    dot = model.to_dot(NAMES)
    assert dot.startswith("digraph") and dot.count("->") == model.n_edges_
    assert dot.count("shape=") == model.n_nodes_
    assert 'odd \\"name\\" =' in dot
    speeds = [float(part.split("\\n")[0].split('"')[0]) for part in dot.split("speed = ")[1:]]
    assert 2000 < np.median(speeds) < 8000
    with pytest.raises(InvalidInputError, match="expected 4 of them, got 1"):
        model.to_dot(["a"])


def test_dot_shows_which_categories_fields_depend_on(model):
    dot = model.to_dot(NAMES, {"speed": ["service", "region"], "region": ["service"]})
    assert dot.count("style=dashed") == 3 and '"service" -> "region" [style=dashed];' in dot


@needs_compiler("a long stream")
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_outline_can_be_drawn_in_units_whose_squares_are_no_numbers(scale):
    model = OSLRAU().partial_fit(scale * clusters(1, 600, 4))
    found = [each for each in model.outline(NAMES)["correlation"] if each is not None]
    assert len(found) > 0 and {percent for each in found for percent in each} <= {*range(-100, 101)}


def test_the_outline_has_every_node_below_its_parent(model):
    outline = model.outline(NAMES)
    assert {len(column) for name, column in outline.items() if name != "fields"} == {model.n_nodes_}
    assert outline["fields"] == NAMES and outline["parent"][0] == -1
    assert all(0 <= parent < i for i, parent in enumerate(outline["parent"][1:], start=1))
    kinds = outline["kind"]
    assert {kind: kinds.count(kind) for kind in model.node_counts_} == model.node_counts_
    for i, kind in enumerate(kinds):
        children = [c for c, parent in enumerate(outline["parent"]) if parent == i]
        if not children and kind == "sum":  # over leaves that have another parent
            shared = outline["leaves"][i]
            found = {(kinds[j], *outline["scope"][j]) for j in shared}
            assert found == {("leaf", *outline["scope"][i])}
            assert 0.8 < sum(outline["shares"][i]) < 1.01
            continue
        weights = [outline["weight"][c] for c in children]
        assert weights.count(None) == len(weights) if kind != "sum" else sum(weights) == approx(1)


def test_the_outline_gives_leaves_in_the_units_of_their_fields():
    rng = np.random.default_rng(0)
    a = rng.normal(100, 20, size=2000)
    X = np.column_stack([a, -5 * a + rng.normal(0, 30, size=2000), rng.normal(3, 1, size=2000)])
    outline = OSLRAU().partial_fit(X, batch_size=100).outline()
    (background,) = [
        i
        for i, parent in enumerate(outline["parent"])
        if len(outline["scope"][i]) == 3 and outline["kind"][i] == "multivariate_leaf"
    ]
    assert outline["mean"][background] == approx([100, -500, 3], rel=0.05)
    assert outline["deviation"][background] == approx([20, 104, 1], rel=0.05)
    ab, ac, bc = outline["correlation"][background]
    assert ab == round(100 * np.corrcoef(X.T)[0, 1]) and abs(ac) < 10 and abs(bc) < 10
    leaves = [i for i, kind in enumerate(outline["kind"]) if kind == "leaf"]
    assert all(len(outline["mean"][i]) == len(outline["deviation"][i]) == 1 for i in leaves)
    without = [
        kind for kind, mean in zip(outline["kind"], outline["mean"], strict=True) if mean is None
    ]
    assert set(without) <= {"sum", "product"}


@needs_compiler("a long stream")
def test_few_fields_have_correlations_in_the_outline(monkeypatch):
    model = OSLRAU(max_leaf_vars=2).partial_fit(clusters(1, 2000, 7), batch_size=256)
    monkeypatch.setattr("faust_oslrau.learner.queries.drawing.WIDEST_MATRIX", 3)
    outline = model.outline()
    wide = [i for i, scope in enumerate(outline["scope"]) if len(scope) == 7]
    assert any(outline["correlation"]) and not any(outline["correlation"][i] for i in wide)
    assert any(outline["mean"][i] is not None for i in wide)
