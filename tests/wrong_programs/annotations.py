from ferrule import Annotations

annotations = Annotations(readonly=True)  # wrong
