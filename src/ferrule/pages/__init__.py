"""Floor 4: parts of self-contained pages: safe elements, a strict content security policy, folding, code, graphs."""
