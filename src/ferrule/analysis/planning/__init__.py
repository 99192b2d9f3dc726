"""What is asked about an analysis as a whole: how hard it is, what to do, whether to go on, and what the answer is."""
