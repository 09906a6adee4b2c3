"""Record batches against the vectors and the golden segments."""
