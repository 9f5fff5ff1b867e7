"""Where the tests find the tools and the experiments of the repository."""

import sys
from pathlib import Path

collect_ignore = ["locked"]  # not a test: Python itself loads it, where a test asks for a locked machine
sys.path[:0] = [str(Path(__file__).parent.parent / folder) for folder in ("tools", "experiments")]
