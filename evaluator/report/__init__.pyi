from .build import ReportPaths as ReportPaths
from .build import build_report as build_report
from .build import write_report as write_report
from .data import ReportData as ReportData
