"""What makes a record usual for its own entity: a device, a customer, a service."""
