"""Work without a worker: replay, produce, inspection of snapshots, input and output files."""
