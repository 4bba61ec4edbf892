"""What people look at: the paper's figures and a self-contained HTML page, both functions of the store."""

from .figures import write_figures as write_figures
from .page import write_report as write_report
