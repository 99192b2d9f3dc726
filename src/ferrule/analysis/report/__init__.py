"""An analysis as a page that shows how each number was made, and as a notebook that makes them again."""

from ferrule.analysis.report.html import render_report, write_report
from ferrule.analysis.report.notebook import render_notebook, write_notebook

__all__ = ["render_notebook", "render_report", "write_notebook", "write_report"]
