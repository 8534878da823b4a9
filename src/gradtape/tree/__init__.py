"""Functions of nested containers: lists, dicts, tuples, dataclasses, modules, your own classes."""

from gradtape.advice.public import make_public as _make_public
from gradtape.tree.functions import (
    all as all,
    leaves as leaves,
    map as map,
    reduce as reduce,
    transpose as transpose,
)
from gradtape.tree.leaf_paths import (
    Path as Path,
    leaves_with_path as leaves_with_path,
    map_with_path as map_with_path,
)
from gradtape.tree.registration import register as register
from gradtape.tree.structures import (
    Structure as Structure,
    flatten as flatten,
    structure as structure,
    unflatten as unflatten,
)
from gradtape.tree.vectors import ravel as ravel

_make_public(globals())
