"""Linear algebra."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.linalg import (
        checks as checks,
        cholesky as cholesky,
        cofactors as cofactors,
        condition as condition,
        determinant as determinant,
        eig as eig,
        eigh as eigh,
        equations as equations,
        factored as factored,
        funm as funm,
        gauge as gauge,
        hermitian as hermitian,
        iterative as iterative,
        lstsq as lstsq,
        lu as lu,
        matrix_functions as matrix_functions,
        matrix_trigonometry as matrix_trigonometry,
        polar as polar,
        powers as powers,
        products as products,
        qr as qr,
        riccati as riccati,
        schur as schur,
        solve as solve,
        spectral as spectral,
        structured as structured,
        subspaces as subspaces,
        svd as svd,
        tensors as tensors,
        triangular as triangular,
    )
