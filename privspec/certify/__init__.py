"""The independent checker. Imports `core`, `language`, `model` and `functions`, nothing of the solving side."""

from privspec.certify.checker import verify
from privspec.certify.report import Claim, Report

__all__ = ["Claim", "Report", "verify"]
