"""What came before a record: running means of its fields, as columns beside the record's own."""
