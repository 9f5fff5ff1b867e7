"""Where the tests find the tools, the experiments and the benchmarks of the repository."""

import sys
from pathlib import Path

collect_ignore = ["locked"]  # not a test: Python itself loads it, where a test asks for a locked machine
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "experiments")]
sys.path.append(str(ROOT / "benchmarks"))  # last: benchmarks/browser.py has the name of a helper of the tests
