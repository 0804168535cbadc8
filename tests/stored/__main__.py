"""Write the results of all cases, a line each: ``python -m stored`` in the folder of the tests."""

import json
from pathlib import Path

from stored.cases import cases

lines = [f"{json.dumps(name)}: {json.dumps(compute())}" for name, compute in cases()]
Path(__file__).with_name("results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
