"""Tasks are run: each as soon as those that it needs have results, by its tool, through the executor."""
