"""Records made to be read in different ways: live, replayed and offline they give the same."""

import orjson
import pytest
from click.testing import CliRunner

from faust_oslrau.app.cli import main

pytestmark = pytest.mark.real_kafka


def _records():
    """Return records with numbers beyond a double, of every depth that a reader might refuse."""
    usual = [b'{"a":%d,"b":%d.5}' % (i % 17, i % 5) for i in range(300)]
    deep = [
        b'{"a":%d,"b":2,"zz":1e400,"y":' % (levels % 7) + b"[" * levels + b"]" * levels + b"}"
        for levels in (*range(390, 410), *range(700, 1100, 5))
    ]
    return usual + [record for pair in zip(deep, usual, strict=False) for record in pair]


def _replay(*arguments):
    result = CliRunner().invoke(main, ["replay", *map(str, arguments)])
    assert result.exit_code == 0, result.output


def _lines(path):
    return path.read_bytes().splitlines()


def _letters(messages):
    """Return offset, reason and detail of dead letters."""
    names = ("oslrau-offset", "oslrau-reason", "oslrau-detail")
    return [tuple(dict(headers)[name] for name in names) for headers in messages]


def test_live_and_replay_take_the_same_hostile_records(
    client, settings, start_worker, topic_name, tmp_path, monkeypatch
):
    features, values = "a,b,v.w", _records()
    client.create(topic_name)
    client.send(topic_name, [(0, value) for value in values])
    start_worker(features=features).wait_records(len(values)).terminate()
    live = [message.value for message in client.read(settings.scores_topic)]
    texts = [
        [(name, text.decode()) for name, text in message.headers]
        for message in client.read(settings.dead_letter_topic)
    ]

    monkeypatch.setenv("OSLRAU_FEATURES", features)
    out, letters = tmp_path / "scores", tmp_path / "letters"
    _replay("--topic", topic_name, "--broker", settings.broker, "--out", out,
            "--dead-letters", letters)  # fmt: skip
    assert _lines(out) == live
    assert _letters(orjson.loads(line)["headers"] for line in _lines(letters)) == _letters(texts)
    assert len(live) + len(texts) == len(values)
    assert {reason for _, reason, _ in _letters(texts)} == {"too_deep"}
