"""What Faust takes from aiokafka, of which a next version may lack some."""

import ast
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path


def _imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aiokafka":
            yield from ((node.module, name.name) for name in node.names)


def _is_missing(module, name):
    try:
        return not hasattr(import_module(module), name)
    except ImportError:
        return True


def test_faust_finds_all_that_it_imports_of_aiokafka():
    folder = Path(distribution("faust-streaming").locate_file("faust"))
    names = {found for file in folder.rglob("*.py") for found in _imported(file)}
    assert ("aiokafka.structs", "TopicPartition") in names
    assert [".".join(each) for each in sorted(names) if _is_missing(*each)] == []
