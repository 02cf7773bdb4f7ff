"""What came before a record: running means of its fields, and the scores of the last records."""
