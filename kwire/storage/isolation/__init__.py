"""What read_committed may see: transactions, their markers, a planned end."""
