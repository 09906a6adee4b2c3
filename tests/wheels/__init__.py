"""The wheels: the recipe by one of them, and the workflows that build the others."""
