"""Where statements come from, as their records say it."""

PAPER = "arXiv 2606.24975"
OWN = "Longroute"
TEXTBOOK = "textbook"
