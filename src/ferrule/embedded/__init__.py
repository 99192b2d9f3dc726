"""The embedded model: its weights, its tokenizer, its model card, and the lists that it is measured on. Data only."""
