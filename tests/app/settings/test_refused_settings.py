"""Settings that are wrong, and the line that says so."""

import os
import re
from pathlib import Path

import pytest
from settings_sources import SASL, toml

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.app.settings.former import FORMER
from faust_oslrau.learner.categories.layer import MOST_FIELDS

_NO_ZONES = ("Berlin", "Europe", "../UTC", "+01:00", "localtime", "posixrules", "Factory")
_NO_ZONES += ("posix/Europe/Berlin", "right/UTC", "europe/berlin", "")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("broker", "localhost", "expected host:port"),
        ("broker", "localhost:99999", "expected host:port"),
        ("broker", 9092, "expected host:port"),
        ("app_id", "a b", "expected a topic name"),
        ("source_topics", [], "expected distinct topic names"),
        ("source_topics", ["a", "a"], "expected distinct topic names"),
        ("source_topics", "a/b", "expected distinct topic names"),
        ("features", [], 'expected "auto" or a list of distinct field names'),
        ("features", ["x", "x"], "expected"),
        ("features", ["x", 3], "expected"),
        ("transforms", "x=sqrt", "expected fields with one of log, log1p, asinh"),
        ("transforms", "x", "expected fields with one of log"),
        ("directions", "x=up", "expected fields with one of high, low each"),
        ("least", "x=0", "expected fields with a positive number each"),
        ("least", {"x": "inf"}, "expected fields with a positive number each"),
        ("least", {"x": [1]}, "expected fields with a positive number each"),
        ("transforms", {"x": 3}, "expected fields with one of log"),
        *(
            ("history", spans, "expected up to 4 different")
            for spans in ("10,10", "0", "5 days", "1e9", "1,2,3,4,5")
        ),
        *(("seasons", zone, "expected a time zone such as") for zone in _NO_ZONES),
        ("features", ["\udcff"], "expected"),
        ("scores_topic", "..", "expected a topic name"),
        ("scores_topic", "features", "expected a topic of its own"),
        ("anomalies_topic", "scores", "expected a topic of its own"),
        ("start", "yesterday", 'expected "earliest", "latest" or a time with its zone'),
        ("start", "2026-01-31T00:00:00", "expected"),
        ("start", 7, "expected"),
        ("learning", "maybe", "expected true or false"),
        ("learning", 2, "expected true or false"),
        ("batch_size", 15, "expected an integer from 16 to 65536"),
        ("batch_size", 16.5, "expected an integer"),
        ("batch_size", True, "expected an integer"),
        ("batch_size", "many", "expected an integer"),
        ("batch_size", None, "expected an integer"),
        ("alarm_rate", 0, "expected a number in (0, 1)"),
        ("alarm_rate", 1, "expected a number in (0, 1)"),
        ("alarm_rate", "nan", "expected a number"),
        ("alarm_rate", float("inf"), "expected a number"),
        ("max_message_bytes", 0, "expected an integer of at least 1024"),
        ("events", ["record"], "expected some of records, incidents, new_entities"),
        ("events", [], "expected some of records"),
        ("snapshots", "topic", "expected topic:NAME, folder:PATH, s3://BUCKET/PREFIX, "),
        ("snapshots", "topic:a b", "expected topic:NAME"),
        ("snapshots", "folder:", "expected topic:NAME"),
        *(
            ("snapshots", address, "expected topic:NAME")
            for address in (
                *("s3:x", "s3://", "s3://-x", "s3:///x", "file:///x", "https://x.blob.example/y"),
                *("s3://user:password@x", "s3://x?secret=y", "s3://x/../y", "s3://x/."),
                "s3://x//y",
            )
        ),
        ("snapshots", "topic:scores", "expected a topic of its own"),
        ("web_host", "", "expected a non-empty text"),
        ("web_port", 65536, "expected an integer from 1 to 65535"),
        ("web_allowed_hosts", "a.example:6066", "expected distinct host names"),
        ("web_allowed_hosts", "https://a.example", "expected distinct host names"),
        ("snapshot_interval", -1, "expected a number"),
        ("log_level", "LOUD", "expected one of DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_a_wrong_value_fails_in_one_line_that_says_what_was_expected(name, value, expected):
    with pytest.raises(SettingsError) as failure:
        Settings(**{name: value})
    message = str(failure.value)
    assert f"setting {name}: " in message and expected in message
    shown = repr(value)[1:-1] if isinstance(value, str) else repr(value)
    assert shown in message and "\n" not in message


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"format": "xml"}, "setting format: expected one of json, avro, protobuf, json_schema, "
                            "got 'xml'"),
        ({"format": "avro"}, "setting registry.url: expected the registry's address with format "
                             "avro"),
        ({"scores_format": "protobuf"}, "setting scores_format: expected one of json, avro, "
                                        "got 'protobuf'"),
        ({"scores_format": "avro"}, "setting registry.url: expected the registry's address with "
                                    "scores_format avro"),
        ({"registry": {"url": "registry:8081"}}, "setting registry.url: expected an address that "
         "begins with http:// or https://, or none, got 'registry:8081'"),
        ({"registry": {"url": "http://r", "ca_file": "ca.pem"}}, "setting registry.ca_file: "
         "expected no value unless registry.url begins with https://, got 'ca.pem'"),
        ({"registry": {"username": "me"}}, "setting registry.password: expected the password of "
                                           "'me', got none"),
        ({"registry": {"schemas_topic": "a b"}}, "setting registry.schemas_topic: expected a topic "
         "name of letters, digits, '.', '_' and '-', at most 249, got 'a b'"),
        ({"format": "avro", "registry": {"url": "http://r", "schemas_topic": "scores"}},
         "setting registry.schemas_topic: expected a topic of its own, got 'scores'"),
    ],
)  # fmt: skip
def test_a_wrong_setting_of_a_registry_is_named(settings, told):
    with pytest.raises(SettingsError) as failure:
        load_settings(None, {}, **settings)
    assert str(failure.value) == told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"MIXTURES": "true", "OSLRAU": "background=false"},
            "setting learner.mixtures: expected false with learner.oslrau.background = false, "
            "got true",
        ),
        (
            {"KIND": "stacked"},
            "environment variable OSLRAU_LEARNER_KIND is no longer a setting: leave it out, "
            "or write learner.mixtures = true for the kind stacked",
        ),
        (
            {"TREE_NODES": "5"},
            "environment variable OSLRAU_LEARNER_TREE_NODES is no longer a setting: leave it out, "
            "mixtures have up to a third of learner.max_nodes",
        ),
        (
            {"OSLRAU": "corr_threshold=2"},
            "setting learner.oslrau.corr_threshold: expected a number in (0, 1], got '2'",
        ),
        ({"OSLRAU": "corr=2"}, "setting learner.oslrau: expected some of corr_threshold, "),
    ],
)
def test_wrong_settings_of_the_learner_are_refused_by_name(given, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_settings(None, {f"OSLRAU_LEARNER_{name}": value for name, value in given.items()})


def test_a_long_wrong_value_is_cut():
    with pytest.raises(SettingsError) as failure:
        Settings(web_port="x" * 10_000)
    assert len(str(failure.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batchsize = 3", "unknown setting batchsize, did you mean batch_size?"),
        ("[learner]\ncorr = 3", "unknown setting learner.corr"),
        ("[lerner]\nmemory = 3", "unknown setting lerner, did you mean learner?"),
        ("learner = 3", "setting learner: expected a table, got 3"),
        ("batch_size = ", "expected TOML"),
        (b'broker = "\xff"', "expected TOML"),
        ("features = " + "[" * 3000 + "]" * 3000, "toml: expected TOML with fewer brackets"),
        (None, "No such file"),
        (
            '[security]\nsasl_password = "hunter-2"',
            "expected the environment variable OSLRAU_SASL_PASS",
        ),
    ],
)
def test_a_wrong_file_fails_in_one_line(tmp_path, text, message):
    with pytest.raises(SettingsError) as failure:
        load_settings(toml(tmp_path, text), {})
    assert message in str(failure.value)
    assert "\n" not in str(failure.value) and "hunter-2" not in str(failure.value)


def test_an_unknown_environment_variable_with_our_prefix_fails():
    with pytest.raises(SettingsError, match="OSLRAU_BROKERS, did you mean OSLRAU_BROKER"):
        load_settings(None, {"OSLRAU_BROKERS": "a:1"})


def test_a_wrong_secret_is_not_shown():
    with pytest.raises(SettingsError) as failure:
        load_settings(None, SASL | {"OSLRAU_SASL_PASSWORD": "hunter-2\n"})
    assert "hunter" not in str(failure.value) and "a secret" in str(failure.value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["endless", "pipe", "large"])
def test_a_password_or_settings_file_that_is_none_is_refused(kind, tmp_path):
    path = Path("/dev/zero") if kind == "endless" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes to it
    if kind == "large":
        path.write_bytes(b" " * 1_000_001)
    reason = "more than 65,536 bytes" if kind == "large" else "not a regular file"
    environ = {name: value for name, value in SASL.items() if "PASSWORD" not in name}
    with pytest.raises(SettingsError, match=f"expected a readable file, got '{path}': {reason}"):
        load_settings(None, environ | {"OSLRAU_SASL_PASSWORD_FILE": str(path)})
    reason = "more than 1,000,000 bytes" if kind == "large" else "not a regular file"
    with pytest.raises(SettingsError, match=f"settings file {path}: {reason}"):
        load_settings(path, {})


@pytest.mark.parametrize(
    ("security", "message"),
    [
        ({"protocol": "TLS"}, "security.protocol: expected one of PLAINTEXT, SSL"),
        ({"protocol": "SASL_SSL"}, "security.sasl_username: expected a value with protocol SASL"),
        (
            {"sasl_username": "meter"},
            "security.sasl_username: expected no value with protocol PLAIN",
        ),
        ({"ca_file": "ca.pem"}, "security.ca_file: expected no value with protocol PLAINTEXT"),
        ({"protocol": "SSL", "key_file": "k.pem"}, "security.cert_file: expected"),
        ({"sasl_mechanism": "GSSAPI"}, "security.sasl_mechanism: expected one of PLAIN, SCRAM"),
        *(
            ({"protocol": "SASL_SSL", **given}, rf"security\.{name}: expected .*value")
            for name, given in (
                ("sasl_token_file", {"sasl_mechanism": "OAUTHBEARER"}),
                ("sasl_password", {"sasl_mechanism": "OAUTHBEARER", "sasl_password": "p"}),
                (
                    "sasl_token_file",
                    {"sasl_username": "u", "sasl_password": "p", "sasl_token_file": "t"},
                ),
            )
        ),
    ],
)
def test_security_settings_that_do_not_belong_together_fail(security, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(None, {}, security=security)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"transforms": {"b": "log"}}, "transforms: expected fields of the setting features"),
        ({"least": {"b": 1.0}}, "setting least: expected fields of the setting features"),
        ({"features": ["a", "b"], "kinds": {"b": "category"}, "directions": {"b": "low"}},
         "setting directions: expected numbers, got b"),
        ({"features": ["a", "b"], "kinds": {"a": "category"}, "transforms": {"a": "log"}},
         "setting transforms: expected numbers, got a"),
        ({"kinds": {"a": "colour"}}, "expected fields with one of number, count, category"),
        ({"kinds": {"b": "category"}}, "setting kinds: expected fields of the setting features"),
        ({"kinds": {"a": "ignored"}}, "setting kinds: expected no chosen field ignored, got a"),
        ({"entity": "a"}, "setting entity: expected none of the setting features"),
        ({"time": "a"}, "setting time: expected none of the setting features"),
        ({"rates_by": "status"}, "setting rates_by: expected none without the setting rates"),
    ],
)  # fmt: skip
def test_settings_of_fields_that_do_not_go_together_are_refused(given, message):
    with pytest.raises(SettingsError, match=message):
        Settings(**{"features": ["a"], **given})


@pytest.mark.parametrize("name", FORMER)
def test_a_former_setting_is_answered_with_what_to_write_instead(name, tmp_path):
    table, _, inside = name.rpartition(".")
    text = f'{inside} = "5"' if not table else f'[{table}]\n{inside} = "5"'
    variable = "OSLRAU_" + name.replace(".", "_").upper()
    for path, environ in ((toml(tmp_path, text), {}), (None, {variable: "5"})):
        with pytest.raises(SettingsError) as failure:
            load_settings(path, environ)
        named = f"environment variable {variable}" if environ else name
        assert str(failure.value).startswith(f"{named} is no longer a setting: {FORMER[name]}")
        assert "\n" not in str(failure.value)


def test_more_categories_than_the_learner_takes_are_refused() -> None:
    kinds = tuple((f"c{i:03}", "category") for i in range(MOST_FIELDS + 1))
    assert Settings(kinds=kinds[1:])
    with pytest.raises(SettingsError, match="kinds: expected at most 128 categories, got 129"):
        Settings(kinds=kinds)
