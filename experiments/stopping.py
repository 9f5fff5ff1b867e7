"""What an experiment says when it stops early: one line in place of a traceback."""

import functools
import sys


def one_line(main):
    """Decorates main(arguments) -> None; it then returns the exit status."""

    @functools.wraps(main)
    def command(arguments=None):
        try:
            main(arguments)
        except KeyboardInterrupt:
            print("Interrupted. What was finished is kept; the same command does the rest.", file=sys.stderr)
            return 130
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            print(f"Stopped: {error.strerror or error}{where}. What was saved before is untouched.", file=sys.stderr)
            return 1
        except ImportError as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    return command
