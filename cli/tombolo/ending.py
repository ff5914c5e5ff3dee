# SPDX-License-Identifier: Apache-2.0
"""The end of every command: a mistake is a sentence and status 2, Ctrl-C is status 130 without a word."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tombolo import files
from tombolo.errors import UserError


@contextmanager
def in_order(name: str) -> Iterator[None]:
    """Ends the process for an exception that the block of the command `name` raises."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # closed by the caller
                sys.stdout.flush()
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno not in files.FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries again at its end, and tells it
        print(f"{name}: {error.filename or 'standard output'} cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
