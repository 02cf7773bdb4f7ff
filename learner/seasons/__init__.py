"""What is usual at an hour of the day and of the week."""
