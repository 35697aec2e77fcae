"""The typed graph: domains, neighbour relations, measures. May import `core` and `language`."""

from privspec.model.build import load_model
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import GraphNode, Model
from privspec.model.neighbours import InputBlock
from privspec.model.requirements import Requirement
from privspec.model.targets import target

__all__ = [
    "Environment",
    "GraphNode",
    "InputBlock",
    "Model",
    "Requirement",
    "evaluate",
    "load_model",
    "target",
]
