"""Links between the pages resolve, and every page of docs/ can be found."""

import re

import pytest
from doc_pages import PAGES, ROOT, read, without_blocks

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links(page):
    """Return the relative links of a page as (path, anchor)."""
    found = _LINK.findall(without_blocks(read(page)))
    return [link.partition("#")[::2] for link in found if "://" not in link]


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(without_blocks(read(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page):
    for path, anchor in links(page):
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert target.exists(), f"{page}: {path}"
        if anchor:
            assert anchor in anchors(target.relative_to(ROOT).as_posix()), (
                f"{page}: {path}#{anchor}"
            )


def test_the_readme_names_every_page_of_docs():
    linked = {(ROOT / path).resolve() for path, _ in links("README.md") if path}
    pages = {ROOT / page for page in PAGES if page.startswith("docs/")}
    assert pages - {ROOT / "docs" / "README.md"} <= linked
