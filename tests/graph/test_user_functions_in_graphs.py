"""Graphs with functions of users: caches must not take one function for another of its name."""

import numpy as np

import gradtape as gt
from gradtape.core.aval import aval_of
from gradtape.graph.ir import structural_hash
from gradtape.graph.trace import trace


def named(factor):
    @gt.custom_vjp
    def scaled(x):
        return factor * x

    @scaled.defvjp
    def rule(ct, out, x):
        return (factor * ct,)

    return scaled


def graph_of(function):
    return trace(lambda x: gt.sin(function(x)), [aval_of(np.array(1.0))]).graph


def test_custom_functions_of_one_name_differ():
    double, triple = named(2.0), named(3.0)
    first, second = graph_of(double), graph_of(triple)
    assert structural_hash(first) != structural_hash(second)
    assert structural_hash(first) == structural_hash(graph_of(double))
