"""Tells people of events: a consumer of the anomalies topic, outside the promise of scores."""
