"""Programs for GPUs that need not be there: calls are made on a phantom GPU, kept, launched."""
