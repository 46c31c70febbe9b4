"""Result settings: how results are computed, ranked and shown, where a school does not take the defaults."""
