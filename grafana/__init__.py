"""The dashboards, as code: `python -m grafana.build` writes them into `grafana/dashboards`."""
