"""The C core alone, without Python, under libFuzzer and the sanitisers."""
