"""The sample programs, as people use them."""
