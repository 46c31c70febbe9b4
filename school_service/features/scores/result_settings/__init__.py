"""Result settings: how results are computed, ranked and shown, apart from the defaults."""
