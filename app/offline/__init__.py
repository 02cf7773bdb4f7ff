"""What runs without a worker: files in and out, replay, produce, inspection of snapshots."""
