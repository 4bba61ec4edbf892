"""The parts of the single loop in the null space of the constraints: points, steps, the cone, and how sharp a look is."""
