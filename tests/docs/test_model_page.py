"""docs/model.md against the sizes of the network."""

from doc_pages import rows, section

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked.background import N_BACKGROUND
from faust_oslrau.learner.stacked.leaves import WIDE
from faust_oslrau.learner.stacked.training import sizes

D = 16


def test_the_parts_have_as_many_nodes_as_it_says():
    model = StackedSPN()
    share = sizes(D, model.max_nodes, None)
    products = 1 + share.products * (1 + D) + D * (share.leaves + len(WIDE))
    told = {row[0]: row[2] for row in rows(section("docs/model.md", "The network"), 3)}
    assert told == {
        "independent": f"{1 + D}",
        "products": f"{products:,} with the leaves",
        "Gaussians": f"{1 + share.gaussians}",
        "background": f"{N_BACKGROUND}",
    }
    assert 1 + D + products + 1 + share.gaussians + N_BACKGROUND < model.max_nodes
