"""TLS, passwords, certificates and access rights on a real Kafka."""

import os
import time

import pytest
from clean_run import assert_as_clean, clean_run, rows, scores_of
from command_line import run
from secure_kafka import (
    PASSWORD,
    TOKEN_SECONDS,
    USER,
    Keys,
    allow,
    deny,
    new_token,
    secure_kafka,
)

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def kafka(kafka_installed, keys, tmp_path_factory):
    with secure_kafka(tmp_path_factory.mktemp("kafka"), keys) as broker:
        yield broker


@pytest.fixture
def come(kafka, keys, tmp_path):
    """A function that returns settings to come to the broker as the user `worker`."""

    def come(way="SCRAM-SHA-512"):
        if way == "certificate":
            files = {f"security_{name}": getattr(keys, name) for name in ("cert_file", "key_file")}
            own = {"security_protocol": "SSL", **files}
        else:
            own = {"security_protocol": "SASL_SSL", "sasl_mechanism": way}
            own |= (
                {"sasl_token_file": tmp_path / "token"}
                if way == "OAUTHBEARER"
                else {"sasl_username": USER, "sasl_password": PASSWORD}
            )
        broker = kafka.secure_servers(own["security_protocol"])
        return {"broker": broker, "security_ca_file": keys.ca_file, **own}

    return come


@pytest.fixture
def password(come):
    return come()


_OUTPUTS = ("scores", "anomalies", "dead", "snapshots")


@pytest.fixture
def allowed_to_write(servers, topic_name):
    """What docs/security.md says that a worker needs where the topics exist."""
    allow(servers, "topic", topic_name, "read", "describe_configs")
    for name in _OUTPUTS:
        allow(servers, "topic", f"{topic_name}.{name}", "write", "describe_configs")
    allow(servers, "topic", f"{topic_name}.snapshots", "read")
    allow(servers, "group", topic_name, "read")
    allow(servers, "transactional_id", f"{topic_name}/", "write", "describe", prefixed=True)


@pytest.fixture
def allowed(allowed_to_write, servers, topic_name):
    """What it needs to create the topics, and to add partitions to them."""
    for name in _OUTPUTS:
        allow(servers, "topic", f"{topic_name}.{name}", "create", "alter")


@pytest.fixture
def create_topics(client, settings, topic_name):
    """A function that creates all topics of a worker, with a partition each."""

    def create():
        outputs = (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)
        for topic in (topic_name, *outputs):
            client.create(topic, 1)
        client.create(settings.snapshots_topic, 1, **{"cleanup.policy": "compact"})

    return create


@pytest.fixture
def command(settings):
    """A function that runs a command with the test's settings."""
    names = ("app_id", "scores_topic", "anomalies_topic", "dead_letter_topic", "snapshots")
    own = {name: getattr(settings, name) for name in names}
    own["source_topics"] = settings.source_topics[0]

    def with_settings(access, *arguments):
        environment = {f"OSLRAU_{name.upper()}": str(v) for name, v in {**own, **access}.items()}
        return run(*arguments, env=os.environ | environment)

    return with_settings


@pytest.mark.parametrize(
    ("way", "delivery"),
    [
        ("SCRAM-SHA-256", "at_least_once"),
        ("SCRAM-SHA-512", "exactly_once"),
        ("certificate", "at_least_once"),
    ],
)
def test_a_worker_with_these_rights_and_no_others_scores_and_goes_on(
    delivery, way, come, allowed, client, settings, start_worker, topic_name
):
    access = come(way)
    client.create(topic_name, 2)
    for seed in (0, 1):
        client.send(topic_name, rows(1000, 2, seed))
        worker = start_worker(**access, delivery=delivery, log_level="DEBUG").wait_records(1000)
        pages = [worker.get(page)[1] for page in ("/metrics", "/model", "/healthz", "/readyz")]
        assert worker.terminate() == 0
        assert PASSWORD not in worker.log() + "".join(pages)
    assert_as_clean(client, settings, 2)


def test_a_worker_comes_with_a_token_from_a_file_that_is_read_again(
    come, allowed, client, settings, start_worker, topic_name, tmp_path
):
    client.create(topic_name, 2)
    file = tmp_path / "token"
    file.write_text(new_token(USER, 60) + "\n")
    worker = start_worker(**come("OAUTHBEARER")).wait_ready()
    for seed in range(2):  # the broker ends all connections in between
        file.write_text(new_token(USER, 60))
        client.send(topic_name, rows(400, 2, seed))
        worker.wait_records(400 * (seed + 1))
        time.sleep(TOKEN_SECONDS / 2)
    assert worker.terminate() == 0
    assert scores_of(client, settings) == clean_run(client, settings)[0]


def test_every_command_takes_the_same_settings(
    password, allowed, command, client, servers, settings, start_worker, topic_name, tmp_path
):
    allow(servers, "topic", topic_name, "write", "create")
    data = tmp_path / "data.csv"
    data.write_text("a,b\n" + "".join(f"{i % 97},{i % 89}\n" for i in range(600)))
    out, told = tmp_path / "scores.ndjson", ""
    for name, *arguments in (
        ("produce", data, "--topic", topic_name, "--create-topic", "--partitions", 1),
        ("inspect", "--partition", f"{topic_name}/0"),
        ("inspect", "--reset", 100, "--yes"),
        ("replay", "--topic", topic_name, "--out", out),
    ):
        done = command(password, name, *arguments)
        assert done.exit_code == 0, done.output
        told += done.output
        if name == "produce":
            assert start_worker(**password).wait_records(600).terminate() == 0
    scores = [score.value for score in client.read(settings.scores_topic)]
    assert out.read_bytes().splitlines() == scores
    assert "offset 600" in told and PASSWORD not in told


def test_schemas_that_were_accepted_and_may_not_be_read_are_no_reason_to_ask_the_registry(
    password, command, client, servers, topic_name, tmp_path
):
    schemas = f"{topic_name}.schemas"
    for name in (topic_name, schemas):
        client.create(name, 1)
    client.send(topic_name, rows(10, 1, 0))
    allow(servers, "topic", topic_name, "read")
    registry = {"format": "avro", "registry_url": "http://127.0.0.1:1"}
    access = {**password, **registry, "registry_schemas_topic": schemas}
    done = command(access, "replay", "--topic", topic_name, "--out", tmp_path / "scores.jsonl")
    assert done.exit_code == 3
    assert f"no right to Read on topic {schemas}\n" in done.output
    assert "former settings, if there were any, do not count" in done.output


@pytest.fixture(
    params=["password", "user", "mechanism", "authority", "name", "certificate", "token"]
)
def refused(come, password, tmp_path, request):
    """Settings with something wrong in them, and what is said of it."""
    stranger = Keys(tmp_path)
    if request.param == "certificate":
        wrong = {"security_cert_file": stranger.cert_file, "security_key_file": stranger.key_file}
        return come("certificate") | wrong, "TLS fails"
    if request.param == "token":
        (tmp_path / "token").write_text(new_token(USER, -1))
        return come("OAUTHBEARER"), "the token is refused, or has expired"
    wrong, said = {
        "password": ({"sasl_password": "wrong-horse"}, "invalid credentials"),
        "user": ({"sasl_username": "nobody"}, "invalid credentials"),
        "mechanism": ({"sasl_mechanism": "PLAIN"}, "UnsupportedSaslMechanismError for PLAIN"),
        "authority": ({"security_ca_file": stranger.ca_file}, "certificate is not accepted"),
        "name": ({"broker": password["broker"].replace("127.0.0.1", "localhost")}, "mismatch"),
    }[request.param]
    return password | wrong, said


def test_a_refusal_is_told_in_one_clear_line(refused, command):
    access, said = refused
    told = command(access, "inspect")
    assert told.exit_code == 3
    line = told.output.splitlines()[-1]
    assert line.startswith(f"Error: no access to the Kafka broker at {access['broker']}: ")
    assert said in line and "Traceback" not in told.output
    assert not any(secret in told.output for secret in (PASSWORD, "wrong-horse"))


@pytest.mark.parametrize("refused", ["password"], indirect=True)
def test_a_refusal_ends_the_start_of_a_worker_in_the_same_line(refused, command, start_worker):
    access, _ = refused
    worker = start_worker(**access)
    assert worker.wait() == 3
    (line,) = [line for line in worker.log().splitlines() if line.startswith("Error: ")]
    assert line == command(access, "inspect").output.splitlines()[-1]
    assert "Traceback" not in worker.log()
    assert not any(secret in worker.log() for secret in (PASSWORD, "wrong-horse"))


def test_the_first_right_that_a_command_lacks_ends_it_with_a_line_that_names_it(
    password, command, client, servers, start_worker, topic_name, settings, tmp_path
):
    for name in (topic_name, settings.anomalies_topic):
        client.create(name, 1)
    replay = ("replay", "--topic", topic_name, "--out", tmp_path / "scores.ndjson")
    told = f"Error: no right to Read on topic {topic_name}"
    for arguments in (replay, ("inspect",)):
        done = command(password, *arguments)
        assert done.exit_code == 3
        assert done.output.splitlines()[-1] == told
    worker = start_worker(**password)
    assert worker.wait() == 3
    assert worker.log().splitlines()[-1] == told
    allow(servers, "topic", settings.anomalies_topic, "read")
    done = command({**password, "notify_alertmanager": "http://127.0.0.1:9"}, "notify")
    group = f"{settings.app_id}-notify-alertmanager"
    assert done.exit_code == 3
    assert done.output.splitlines()[-1].endswith(f"no right to Read on group {group}")


@pytest.fixture(params=["group", "source", *_OUTPUTS])
def lacking(servers, topic_name, request):
    """A right that a worker needs and does not get, others on the same resource it may get."""
    of = request.param
    operation = "write" if of in _OUTPUTS else "read"
    kind, name = "topic", f"{topic_name}.{of}" if of in _OUTPUTS else topic_name
    if of == "group":
        kind = "group"
    deny(servers, kind, name, operation)
    return f"no right to {operation.capitalize()} on {kind} {name}"


def test_a_right_that_is_lacking_ends_the_start_of_a_worker_and_is_told_by_inspect(
    lacking, allowed, password, create_topics, start_worker, command
):
    create_topics()
    listed = command(password, "inspect")
    assert listed.exit_code == 3
    assert listed.output.splitlines()[-1].endswith(lacking)
    worker = start_worker(**password)
    assert worker.wait() == 3
    assert worker.log().splitlines()[-1] == f"Error: {lacking}"


def test_inspect_tells_of_rights_that_a_worker_can_do_without(
    password, allowed, command, create_topics, servers, settings
):
    create_topics()
    deny(servers, "topic", settings.scores_topic, "describe_configs")
    listed = command(password, "inspect")
    assert listed.exit_code == 0
    assert listed.stderr.splitlines() == [
        f"Warning: no right to DescribeConfigs on topic {settings.scores_topic}",
        f"Warning: no right to Read on topic {settings.anomalies_topic}",
    ]


def test_a_worker_names_the_right_that_it_has_lost(
    password, allowed, servers, client, start_worker, settings, topic_name
):
    client.create(topic_name, 1)
    worker = start_worker(**password).wait_ready()
    deny(servers, "topic", settings.scores_topic, "write")
    client.send(topic_name, rows(10, 1, 0))
    told = f"no right to Write on topic {settings.scores_topic}\n"
    worker.wait_until(lambda: told in worker.log(), "told")


def test_a_worker_that_may_not_create_its_topics_says_which(
    password, client, servers, start_worker, settings, topic_name
):
    client.create(topic_name)
    allow(servers, "topic", topic_name, "read")
    worker = start_worker(**password)
    assert worker.wait() == 4
    assert f"Error: topic {settings.scores_topic} with 1 partitions cannot be" in worker.log()
    # It may not see either how long the source keeps its records.
    assert f"the configuration of topic {topic_name} cannot be read" in worker.log()


def test_a_worker_that_may_not_add_partitions_is_refused_at_start_in_one_line(
    password, allowed_to_write, client, start_worker, settings, topic_name
):
    client.create(topic_name, 3)
    client.create(settings.scores_topic, 2)
    worker = start_worker(**password, log_level="ERROR")
    assert worker.wait() == 4
    (line,) = worker.log().splitlines()
    assert line.startswith(
        f"Error: topic {settings.scores_topic} has 2 partitions, expected at least 3, as many as "
    )


def test_new_partitions_without_output_partitions_wait_and_the_others_continue(
    password, allowed_to_write, create_topics, servers, client, start_worker, topic_name
):
    create_topics()
    worker = start_worker(**password).wait_ready()
    client.add_partitions(topic_name, 2)
    worker.wait_until(lambda: "partitions from 1 on are not read" in worker.log(), "aware of it")
    client.send(topic_name, [(i % 2, *row[1:]) for i, row in enumerate(rows(100))])
    worker.wait_records(50)
    assert worker.get("/healthz")[0] == 200
    worker.wait_metric(1, "oslrau_waiting_partitions")
    for name in _OUTPUTS:
        allow(servers, "topic", f"{topic_name}.{name}", "alter")
    worker.wait_records(100)
    worker.wait_metric(0, "oslrau_waiting_partitions")
    assert worker.terminate() == 0
