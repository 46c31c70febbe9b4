"""The exports of a school to other systems in the form of 1EdTech OneRoster 1.2 or 1.1."""
