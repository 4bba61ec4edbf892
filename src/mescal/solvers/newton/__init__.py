"""What solvers share that multiply by the Hessian: a model, trust regions, Krylov spaces; exact Newton on the host."""
