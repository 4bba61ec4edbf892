"""The harness: what a method is given, what it hands back, who judges it, where runs are kept, how they are compared."""

from .judge import Verdict, judge
from .task import Answer, Budget, Method, Task

__all__ = ["Answer", "Budget", "Method", "Task", "Verdict", "judge"]
