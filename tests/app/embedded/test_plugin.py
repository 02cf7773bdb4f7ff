"""The example of docs/plugin.md as a process, and the pages that docs/pages.md lists."""

import random

from doc_pages import blocks, code, rows, section

_EXAMPLE = next(block.text for block in blocks("docs/plugin.md") if block.language == "python")


def test_the_example_scores_and_reports_what_it_finds(
    topics, client, settings, start_worker, tmp_path, monkeypatch
):
    script = tmp_path / "my_app.py"
    script.write_text(_EXAMPLE)
    monkeypatch.chdir(tmp_path)  # where Faust makes the folder of its tables
    rng = random.Random(0)
    usual = [(0, b'{"a": %d, "b": %d}' % (rng.randrange(7), rng.randrange(5))) for _ in range(1000)]
    client.send(settings.source_topics[0], [*usual, (0, b'{"a": 1000, "b": 2}')])
    worker = start_worker(command=[str(script), "worker"]).wait_ready().wait_records(1001)
    reported = "anomaly at offset 1000: {'a': 1000, 'b': 2}"
    worker.wait_until(lambda: reported in worker.log(), "done with its anomalies")
    pages = [page for row in rows(section("docs/pages.md", "Pages"), 3) for page in code(row[0])]
    assert {"/", "/metrics", "/model"} <= set(pages)
    answers = {page: worker.get(page) for page in pages}
    assert "no such entity" in answers.pop("/entity")[1]  # the example has no entities
    for page in ("/incident", "/incidents/TOPIC/PARTITION/OFFSET"):
        assert answers.pop(page)[1].startswith("There is no incident ")
    assert {status for status, _ in answers.values()} == {200}
    assert worker.terminate() == 0
