"""Element-wise steps that follow each other become one formula: one kernel, one read, one write."""
