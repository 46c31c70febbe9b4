"""Promotions: students go on into the next session, by rules over their results and by decisions of people."""
