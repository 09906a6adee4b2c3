"""What the documentation takes from the code: the API reference, the commands, the pictures of speed, llms.txt."""
