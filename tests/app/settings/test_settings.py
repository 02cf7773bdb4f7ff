import inspect
from datetime import UTC, datetime

import pytest
from settings_sources import SASL, toml

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.settings import (
    LearnerSettings,
    NotifySettings,
    Settings,
    describe,
    load_settings,
    secrets,
)
from faust_oslrau.app.settings.value_types import SIDE_NAMES, TRANSFORM_NAMES
from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.scoring.relevance import SIDES
from faust_oslrau.learner.scoring.transforms import LOWER_BOUNDS
from faust_oslrau.topics import Kind


def test_a_file_is_read_with_its_tables(tmp_path):
    path = toml(
        tmp_path,
        """
        broker = "kafka-1:9092, kafka-2:9092"
        features = ["temperature", "vibration.rms"]
        learning = false
        start = 2026-01-31T00:00:00Z
        [learner]
        max_nodes = 400
        memory = 1000
        [security]
        protocol = "SSL"
        """,
    )
    settings = load_settings(path, {})
    assert settings.broker == "kafka-1:9092,kafka-2:9092"
    assert settings.chosen_fields == ("temperature", "vibration.rms")
    assert settings.learning is False
    assert settings.start_timestamp == datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000
    assert settings.learner == LearnerSettings(max_nodes=400, memory=1000)
    assert settings.security.uses_tls


def test_the_environment_wins_over_the_file_that_it_names_and_overrides_over_both(tmp_path):
    path = toml(tmp_path, 'batch_size = 32\nweb_port = 1\nbroker = "a:1"\n[learner]\nmemory = 5')
    environ = {"OSLRAU_BATCH_SIZE": "64", "OSLRAU_WEB_PORT": "2", "OSLRAU_LEARNER_MAX_NODES": "500"}
    settings = load_settings(
        None, environ | {"OSLRAU_SETTINGS": str(path)}, web_port=3, broker=None
    )
    assert (settings.broker, settings.batch_size, settings.web_port) == ("a:1", 64, 3)
    assert (settings.learner.memory, settings.learner.max_nodes) == (5, 500)


def test_variables_are_texts_of_lists_and_none_is_no_value():
    given = {"SOURCE_TOPICS": "a,b", "FEATURES": "x, v.rms", "HISTORY": "10, 5m"}
    absent = dict.fromkeys(("LEARNER_MEMORY", "SEASONS", "EVENTS"), "none")
    environ = {f"OSLRAU_{name}": value for name, value in (given | absent).items()}
    settings = load_settings(None, environ | {"UNRELATED": "kept out"})
    assert settings.source_topics == ("a", "b")
    assert settings.chosen_fields == ("x", "v.rms")
    assert settings.history == ("10", "5m")
    assert settings.learner.memory is settings.seasons is settings.events is None
    assert Settings(seasons="EST5EDT").seasons == "EST5EDT"


def test_no_secret_of_a_registry_is_in_its_address_or_shown():
    with pytest.raises(SettingsError) as failure:
        load_settings(None, {}, registry={"url": "http://me:hidden@registry"})
    assert "hidden" not in str(failure.value)
    found = load_settings(None, {"OSLRAU_REGISTRY_PASSWORD": "hidden"})
    assert found.registry.password == "hidden"
    assert "hidden" not in f"{found} {describe(found)}"
    assert secrets(found) == ["hidden"]


def test_the_file_of_a_registrys_password_is_named_and_not_read_by_the_settings(tmp_path):
    environ = {"OSLRAU_REGISTRY_PASSWORD_FILE": "/run/token"}
    assert load_settings(None, environ).registry.password_file == "/run/token"
    assert load_settings(None, environ | {"OSLRAU_REGISTRY_USERNAME": "me"}).registry.username
    with pytest.raises(SettingsError, match="got both"):
        load_settings(None, environ | {"OSLRAU_REGISTRY_PASSWORD": "hidden"})


def test_the_settings_of_the_learner_are_its_parameters_with_their_defaults():
    parameters = inspect.signature(OSLRAU).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.name != "random_state"}  # of `sample`
    assert LearnerSettings().parameters == defaults


def test_a_secret_is_in_no_text(capsys):
    settings = load_settings(None, SASL)
    assert settings.security.sasl_password == "hunter-2"
    assert "hunter-2" not in repr(settings) + str(settings) + str(describe(settings))
    assert describe(settings)["security"]["sasl_password"] == "(set)"
    assert describe(Settings())["security"]["sasl_password"] is None


def test_each_address_of_a_list_is_a_secret():
    hooks = ("https://chat.example/9f2", "https://ops.example/0a1")
    found = load_settings(None, {"OSLRAU_NOTIFY_WEBHOOK": ", ".join(hooks)})
    assert found.notify.webhook == hooks and secrets(found) == list(hooks)
    assert describe(found)["notify"]["webhook"] == "(set)"
    assert NotifySettings(webhook=hooks[0]).webhook == hooks[:1]


def test_a_secret_can_come_from_a_file(tmp_path):
    path = tmp_path / "password"
    path.write_text("hunter-2\n")
    environ = {name: value for name, value in SASL.items() if "PASSWORD" not in name}
    named = environ | {"OSLRAU_SASL_PASSWORD_FILE": str(path)}
    assert load_settings(None, named).security.sasl_password == "hunter-2"
    with pytest.raises(SettingsError, match="got both"):
        load_settings(None, SASL | named)
    with pytest.raises(SettingsError, match="expected a readable file"):
        load_settings(None, environ | {"OSLRAU_SASL_PASSWORD_FILE": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("name", "written", "pairs", "expected"),
    [
        ("transforms", '{"latency.ms" = "log1p", size = "log"}', "size=log, latency.ms=log1p",
         (("latency.ms", "log1p"), ("size", "log"))),
        ("directions", '{b = "low", a = "high"}', "a=high, b=low", (("a", "high"), ("b", "low"))),
        ("least", '{"b" = 2, a = 0.5}', "a=.5, b=2", (("a", 0.5), ("b", 2.0))),
    ],
)  # fmt: skip
def test_what_fields_have_is_a_table_in_the_file_and_pairs_in_the_environment(
    name, written, pairs, expected, tmp_path
):
    found = load_settings(toml(tmp_path, f"{name} = {written}"), {})
    again = load_settings(None, {f"OSLRAU_{name.upper()}": pairs})
    assert getattr(found, name) == getattr(again, name) == expected
    assert getattr(Settings(), name) == ()


def test_the_names_are_those_of_the_learner():
    assert tuple(LOWER_BOUNDS) == (*TRANSFORM_NAMES, Kind.COUNT)
    assert tuple(SIDES) == SIDE_NAMES


def test_one_list_says_what_the_anomalies_topic_gets():
    default = Settings(entity="key")
    assert default.sends_anomalous_records and default.follows_incidents
    assert (default.entity_events, default.silences) == (("unusual",), False)
    assert Settings().entity_events == ()  # there are none
    chosen = load_settings(None, {"OSLRAU_EVENTS": "silences,new_entities", "OSLRAU_ENTITY": "key"})
    assert chosen.events == ("new_entities", "silences")
    assert not (chosen.sends_anomalous_records or chosen.follows_incidents)
    assert (chosen.entity_events, chosen.silences) == (("new",), True)


@pytest.mark.parametrize(
    ("value", "topic", "folder", "bucket"),
    [
        ("topic:kept", "kept", None, None),
        ("folder:/var/lib/oslrau", None, "/var/lib/oslrau", None),
        ("folder:C:odd", None, "C:odd", None),
        *(
            (address, None, None, address)
            for address in ("s3://bucket", "gs://my.bucket/a/b_c/", "az://container/day=1/..a")
        ),
        ("off", None, None, None),
    ],
)
def test_one_setting_says_where_snapshots_are(value, topic, folder, bucket):
    settings = load_settings(None, {"OSLRAU_SNAPSHOTS": value})
    assert (settings.snapshots_topic, settings.snapshot_folder) == (topic, folder)
    assert settings.snapshot_bucket == bucket
    assert settings.uses_transactions == (topic is not None)


def test_the_parameters_of_oslrau_are_one_table(tmp_path):
    text = "[learner.oslrau]\nmin_count = 9\nmax_leaf_vars = 4"
    expected = LearnerSettings(oslrau={"min_count": 9, "max_leaf_vars": 4})
    assert load_settings(toml(tmp_path, text), {}).learner == expected
    given = {"OSLRAU_LEARNER_OSLRAU": "min_count=9,max_leaf_vars=4"}
    assert load_settings(None, given).learner == expected
    parameters = expected.parameters
    assert (parameters["min_count"], parameters["max_leaf_vars"]) == (9, 4)
    assert parameters["corr_threshold"] == 0.1


@pytest.mark.parametrize("page_url", ["https://ops.example/x", "https://ops.example/x/"])
def test_the_address_of_an_incident_is_below_that_of_the_page_with_odd_characters_quoted(page_url):
    address = Settings(page_url=page_url).incident_address("a b?#\u00fc/1/2")
    assert address == "https://ops.example/x/incidents/a%20b%3F%23%C3%BC/1/2"
    assert Settings().incident_address("a/1/2") is None


def test_kinds_have_the_words_of_their_contents():
    written = "paid=boolean,seen_at=time,order_id=identifier,shop=category,items=count,price=number"
    found = load_settings(None, {"OSLRAU_KINDS": written})
    assert dict(found.kinds) == {
        "paid": "category", "seen_at": "ignored", "order_id": "ignored",
        "shop": "category", "items": "count", "price": "number",
    }  # fmt: skip
