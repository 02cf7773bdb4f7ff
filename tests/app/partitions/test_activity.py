"""What a worker has done, once a minute in its log."""

from faust_oslrau.app.metrics.partition import BlamedFields, PartitionMetrics
from faust_oslrau.app.partitions.activity import Activity


def test_a_line_has_what_was_done_since_the_last_one(caplog):
    caplog.set_level("INFO")
    metrics = [PartitionMetrics(BlamedFields(), "features") for _ in range(2)]
    activity = Activity()
    activity.tell(metrics)
    assert caplog.messages == []  # nothing was done
    for of in metrics:
        of.records.update(scored=100, rejected=1)
        of.anomalies, of.lag = 2, 5
    activity.tell(metrics)
    metrics[0].records["scored"] += 10
    activity.tell(metrics[:1])  # the other one was revoked
    assert caplog.messages == [
        "in the last minute: 200 records scored, 4 anomalies, 2 rejected; open incidents: 0, "
        "unread records: 10",
        "in the last minute: 10 records scored, 0 anomalies, 0 rejected; open incidents: 0, "
        "unread records: 5",
    ]
