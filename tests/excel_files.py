"""Excel files written by hand: nothing but the standard library makes them."""

import datetime
import zipfile
from xml.sax.saxutils import escape

EPOCH = datetime.datetime(1899, 12, 30)
PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>'
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/styles.xml": (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="3">'
        '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs></styleSheet>'
    ),
}


class Fault(str):
    """A cell whose formula has failed, such as #DIV/0!."""


def write_xlsx(path, sheets, merged=()):
    """Write sheets by name, each a list of rows of cells; ``merged`` are ranges such as A1:C1 of the first one."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    entries = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="rId{i}"/>' for i, n in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{relations}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    styles = f'<Relationship Id="rIdS" Type="{relations}/styles" Target="styles.xml"/>'
    parts = PARTS | {
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{entries}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{links}{styles}</Relationships>',
    }
    for i, rows in enumerate(sheets.values(), 1):
        body = "".join(f'<row r="{r}">{_row(r, row)}</row>' for r, row in enumerate(rows, 1))
        spans = "".join(f'<mergeCell ref="{span}"/>' for span in merged) if i == 1 else ""
        spans = f"<mergeCells>{spans}</mergeCells>" if spans else ""
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData>{spans}</worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


def _row(r, cells):
    return "".join(_cell(f"{_letters(c)}{r}", value) for c, value in enumerate(cells))


def _letters(c):
    return chr(65 + c) if c < 26 else _letters(c // 26 - 1) + chr(65 + c % 26)


def _cell(place, value):
    if value is None:
        return ""
    if isinstance(value, Fault):
        return f'<c r="{place}" t="e"><f>1/0</f><v>{value}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime.datetime):
        return f'<c r="{place}" s="2"><v>{(value - EPOCH) / datetime.timedelta(days=1)}</v></c>'
    if isinstance(value, datetime.date):
        return f'<c r="{place}" s="1"><v>{(datetime.datetime(*value.timetuple()[:3]) - EPOCH).days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'
