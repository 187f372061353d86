"""Programs: functions of tensors, traced once, kept in a file, run without their source."""
