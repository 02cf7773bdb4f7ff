"""docs/settings.md against the settings."""

import re
from dataclasses import fields, is_dataclass

import pytest
from doc_pages import code, read, rows, section

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.app.settings.learner_settings import OSLRAU_PARAMETERS
from faust_oslrau.topics import Record

PAGE = read("docs/settings.md")
ROWS = rows(PAGE, 5)
# Instead of the password of the other examples.
TOKEN = "security.sasl_token_file"
FILES = (TOKEN, "registry.password_file")  # in place of passwords
# No setting takes all of these.
_WRONG_VALUES = ("", "=\n")
# What the page says once, not in each row.
_OF_NAMES = " of letters, digits, '.', '_' and '-'"
_LENGTH_OF_NAMES = ", at most 249"
_OF_ADDRESSES = " that begins with http:// or https://"
_OF_ALL_ADDRESSES = _OF_ADDRESSES.replace("begins", "begin")


def cell(text):
    (only,) = code(text)
    return only


def variable(row):
    """Return name and example value of a setting's environment variable."""
    name, value = cell(row[1]).split("=", 1)
    return name, value


def value_of(settings, name):
    for part in name.split("."):
        settings = getattr(settings, part)
    return settings


def names_of(settings, prefix=""):
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        if is_dataclass(value):
            yield from names_of(value, f"{entry.name}.")
        else:
            yield prefix + entry.name


def test_the_tables_have_every_setting_once():
    assert sorted(cell(row[0]) for row in ROWS) == sorted(names_of(Settings()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: cell(row[0]))
def test_the_default_is_the_documented_one(row):
    default = value_of(Settings(), cell(row[0]))
    if row[3] == "none":  # no backticks: there is nothing to write
        assert default == ()
    else:
        found = load_settings(None, base(row) | {variable(row)[0]: cell(row[3])})
        assert value_of(found, cell(row[0])) == default


@pytest.mark.parametrize("row", ROWS, ids=lambda row: cell(row[0]))
def test_the_type_is_what_the_error_expects(row):
    refused = []
    for wrong in _WRONG_VALUES:
        try:
            load_settings(None, base(row) | {variable(row)[0]: wrong})
        except SettingsError as error:
            refused.append(without_rules(str(error)))
    assert refused
    assert all(
        message.startswith(f"setting {cell(row[0])}: expected {row[2]}, got") for message in refused
    )


def without_rules(message):
    for rule in (_OF_NAMES, _LENGTH_OF_NAMES, _OF_ADDRESSES, _OF_ALL_ADDRESSES):
        message = message.replace(rule, "")
    return message


def test_the_rules_for_names_and_addresses_are_those_of_the_errors():
    with pytest.raises(SettingsError, match=f"a topic name{_OF_NAMES}{_LENGTH_OF_NAMES}"):
        load_settings(None, {"OSLRAU_APP_ID": "a/b"})
    assert f"A topic name has{_OF_NAMES.removeprefix(' of')}{_LENGTH_OF_NAMES}." in PAGE
    with pytest.raises(SettingsError, match=f"an address{_OF_ADDRESSES}"):
        load_settings(None, {"OSLRAU_PAGE_URL": "a/b"})
    assert f"An address{_OF_ADDRESSES.removeprefix(' that')}." in PAGE


def test_the_parameters_of_oslrau_are_those_of_its_table_with_their_defaults():
    table = rows(section("docs/settings.md", "The learner"), 3)
    found = {cell(row[0]): cell(row[1]) for row in table}
    for name, default in found.items():
        given = {"OSLRAU_LEARNER_OSLRAU": f"{name}={default}"}
        assert dict(load_settings(None, given).learner.oslrau)[name] == OSLRAU_PARAMETERS[name][0]
    assert sorted(found) == sorted(OSLRAU_PARAMETERS)


def base(row):
    """Return the variables that a setting needs beside itself, such as an entity."""
    if cell(row[0]) == "max_entities":
        return {"OSLRAU_ENTITY": "key"}
    if cell(row[0]) == "rates_by":
        return {"OSLRAU_RATES": "1m"}
    if cell(row[0]) in ("format", "scores_format"):
        return {"OSLRAU_REGISTRY_URL": "http://registry"}
    return {}


def test_the_examples_go_together_and_all_change_a_setting():
    own = [row for row in ROWS if cell(row[0]) not in FILES]
    found = load_settings(None, dict(map(variable, own)))
    names = [cell(row[0]) for row in own]
    assert not [name for name in names if value_of(found, name) == value_of(Settings(), name)]


def is_of_the_model(row):
    """Say whether the page counts a setting among those that a model is made with."""
    (sentence,) = re.findall(r"^Some settings are part of the model: ([^.]*)\.", PAGE, re.MULTILINE)
    table, _, _ = cell(row[0]).partition(".")
    return {table, f"[{table}]"} & set(code(sentence)) != set()


@pytest.mark.parametrize("row", [*filter(is_of_the_model, ROWS)], ids=lambda row: cell(row[0]))
def test_a_model_is_not_continued_with_another_value_of_a_setting_that_is_part_of_it(
    row, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines.model").write_bytes(b"the initial model of the example")
    before = load_settings(None, base(row))
    pipeline = PartitionPipeline("features", 0, before)
    if pipeline.is_choosing:
        pipeline.process([Record("features", 0, 0, None, None, b'{"a": 1}')])
        pipeline.choose_fields()
    snapshot = pipeline.snapshot(0, 0)
    changed = load_settings(None, base(row) | dict([variable(row)]))
    name = cell(row[0]).replace("learner.oslrau", "learner.max_leaf_vars")
    with pytest.raises(SettingsError, match=f"was made with {re.escape(name)} = "):
        PartitionPipeline.restored(snapshot, changed)


def test_a_model_is_continued_with_other_values_of_all_other_settings():
    pipeline = PartitionPipeline("features", 0, Settings())
    pipeline.process([Record("features", 0, 0, None, None, b'{"a": 1}')])
    pipeline.choose_fields()
    snapshot = pipeline.snapshot(0, 0)
    others = [
        variable(row) for row in ROWS if not is_of_the_model(row) and cell(row[0]) not in FILES
    ]
    assert PartitionPipeline.restored(snapshot, load_settings(None, dict(others)))
