"""python -m posviz.lab train | evaluate | smollm2 | minilm"""

import argparse
import shlex
import sys

from posviz.lab.storage import CHECKPOINTS, CheckpointError


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m posviz.lab", description="The small language models of posviz.")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train models and write their checkpoints")
    train.add_argument("--encoding", action="append", default=[], metavar="NAME", help="may be given several times")
    train.add_argument("--all", action="store_true", help="every encoding; finished ones are left as they are")
    train.add_argument("--task", choices=("text", "copy"), default="text")
    train.add_argument("--seed", type=int, default=1)
    train.add_argument("--steps", type=int, help="instead of the number in the recipe")
    train.add_argument("--folder", default=CHECKPOINTS, help="where checkpoints go (default: the shipped ones)")
    train.add_argument("--force", action="store_true", help="train a finished model again")
    evaluate = commands.add_parser("evaluate", help="measure the trained models and print the table")
    evaluate.add_argument("--folder", action="append", help="a folder of checkpoints; may be given several times")
    evaluate.add_argument("--write", action="store_true", help="also write results.json")
    smollm2 = commands.add_parser("smollm2", help="run SmolLM2-135M past its trained length (needs two more packages)")
    smollm2.add_argument("--length", type=int, default=16_384, help="tokens of each text")
    smollm2.add_argument("--texts", type=int, default=3)
    smollm2.add_argument("--bfloat16", action="store_true", help="faster on processors that have it")
    commands.add_parser("minilm", help="take the position table out of all-MiniLM-L6-v2 (needs its package)")
    options = parser.parse_args(arguments)
    run = {"train": run_train, "evaluate": run_evaluate, "smollm2": run_smollm2, "minilm": run_minilm}
    try:
        return run[options.command](options)
    except KeyboardInterrupt:
        print("Interrupted. Nothing is lost: the same command goes on from here.", file=sys.stderr)
        return 130
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"Stopped: {error.strerror or error}{where}. What was saved before is untouched.", file=sys.stderr)
        return 1
    except (CheckpointError, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1


def run_train(options):
    from posviz.lab.encodings import ENCODINGS
    from posviz.lab.training import Finished, train_to_file

    names = list(ENCODINGS) if options.all else options.encoding
    unknown = [name for name in names if name not in ENCODINGS]
    if unknown or not names:
        what = f"unknown encoding {unknown[0]!r}" if unknown else "name an --encoding, or say --all"
        print(f"{what}. The encodings are: {', '.join(ENCODINGS)}", file=sys.stderr)
        return 2
    status = 0
    for name in names:
        command = f"python -m posviz.lab train --encoding {name} --task {options.task} --seed {options.seed}"
        if options.steps:
            command += f" --steps {options.steps}"
        if options.folder != CHECKPOINTS:
            command += f" --folder {shlex.quote(str(options.folder))}"
        try:
            record = train_to_file(
                name, options.task, options.seed, options.folder, command, options.force, options.steps
            )
        except Finished as error:
            print(error, file=sys.stderr)
            status = status if options.all else 1
        else:
            print(f"{name}: loss {record['final_loss']:.3f} after {record['recipe']['steps']} steps", flush=True)
    return status


def run_evaluate(options):
    from posviz.lab.evaluate import evaluate

    evaluate(options.folder or [CHECKPOINTS], options.write)
    return 0


def run_smollm2(options):
    from posviz.lab.real_model import measure

    measure(options.length, options.texts, options.bfloat16)
    return 0


def run_minilm(options):
    from posviz.lab.real_model import save_position_table

    print(f"written: {save_position_table()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
