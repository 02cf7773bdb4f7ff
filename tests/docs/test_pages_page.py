"""docs/pages.md against the log; tests/app/embedded/test_plugin.py asks for its pages."""

import json
import logging
import sys

from doc_pages import code, rows, section

from faust_oslrau.app.logs import JsonFormatter, at


def test_the_members_of_a_line_are_the_documented_ones():
    documented = {
        name for row in rows(section("docs/pages.md", "The log"), 2) for name in code(row[0])
    }
    try:
        raise ValueError
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("worker", logging.INFO, "", 0, "text", None, error)
    vars(record).update(at(("features", 1), 7, reason="not_json", records=1, reasons={}))
    assert json.loads(JsonFormatter().format(record)).keys() == documented
