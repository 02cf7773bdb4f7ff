"""Tells people of incidents: a consumer of the anomalies topic, outside the promise of scores."""
