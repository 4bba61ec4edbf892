"""The algorithms at their own steps: every parameter from a formula of `theory`, or set by hand as in the paper."""
