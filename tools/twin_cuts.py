# SPDX-License-Identifier: Apache-2.0
"""The common part of the operators of broken twins: calls by receiver and name, and their replacements.

An operator yields cuts (start, end, replacement) for the tree of a file (syntax_tree.py).
"""

from collections.abc import Callable, Iterator

from syntax_tree import Node

Cut = tuple[int, int, str]
Operator = Callable[[Node], Iterator[Cut]]
Calls = dict[str, set[str]]  # names by receiver, both as written

NUMBERS = {"raise", "raise_version", "fetch_add"}  # other calls give a Status
OTHER_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def calls_in(text: str) -> Calls:
    """Of lines `receiver receiver: name name`; `-` stands for no receiver."""
    found: Calls = {}
    for line in text.strip().splitlines():
        receivers, names = line.split(": ")
        for receiver in receivers.split():
            found.setdefault(receiver.removeprefix("-"), set()).update(names.split())
    return found


def is_call(node: Node, of: Calls) -> bool:
    return node.name in of.get(node.receiver, ())


def calls(tree: Node, of: Calls) -> Iterator[Node]:
    return (node for node in tree.all if is_call(node, of))


def calls_named(tree: Node, *names: str) -> Iterator[Node]:
    return (node for node in tree.all if node.name in names)


def leaving_out(of: Calls, value: str = "Status()") -> Operator:
    """`value`: in the place of a call that is no statement."""

    def operator(tree: Node) -> Iterator[Cut]:
        for call in calls(tree, of):
            given = "0" if call.name in NUMBERS else value
            yield call.start, call.end, "(void)0" if call.is_statement else given

    return operator


def exchanged(first: Node, last: Node) -> Cut:
    """`first` comes behind the statements that follow it, up to `last`."""
    text, middle = first.source, first.end_of_statement
    start = next(node.start for node in first.parent.children if node.start >= middle)
    end = last.end_of_statement
    return first.start, end, text[start:end] + text[middle:start] + text[first.start : middle]


def comparisons(tree: Node) -> Iterator[Node]:
    return (node for node in tree.all if node.operator in OTHER_BOUND)


def moved(comparison: Node) -> Cut:
    """With its bound, or without, against the source."""
    operator = comparison.operator
    start = comparison.source.index(operator, comparison.children[0].end)
    return start, start + len(operator), OTHER_BOUND[operator]
