# SPDX-License-Identifier: Apache-2.0
"""cuML of RAPIDS, on NVIDIA's cuBLAS and cuSOLVER, compared with scikit-learn."""

import steps

steps.begin()

import cuml
import numpy
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model
import sklearn.neighbors

steps.framework("cuML", cuml.__version__)

random = numpy.random.default_rng(1)
points = random.standard_normal((500, 5), dtype=numpy.float32)
values = (points @ numpy.arange(1, 6, dtype=numpy.float32) + 0.5 + 0.1 * random.standard_normal(500)).astype(numpy.float32)
groups = (points + 6 * random.integers(0, 3, (500, 1))).astype(numpy.float32)
starts = groups[[0, 1, 2]]


def linear(library):
    model = library.linear_model.LinearRegression().fit(points, values)
    return [numpy.asarray(model.coef_), float(model.intercept_)]


def ridge(library):
    return numpy.asarray(library.linear_model.Ridge(alpha=1.0).fit(points, values).coef_)


def logistic(library):
    """How many are classified rightly: the solvers stop at different points."""
    model = library.linear_model.LogisticRegression().fit(points, (values > 0).astype(numpy.int32))
    return float((numpy.asarray(model.predict(points)) == (values > 0)).mean())


def components(library):
    return numpy.asarray(library.decomposition.PCA(n_components=3).fit(points).explained_variance_)


def means(library):
    return float(library.cluster.KMeans(n_clusters=3, init=starts, n_init=1, max_iter=20).fit(groups).inertia_)


def density(library):
    """Which points belong to no cluster."""
    return numpy.asarray(library.cluster.DBSCAN(eps=1.2, min_samples=5).fit_predict(points)) == -1


def neighbours(library):
    distances, indices = library.neighbors.NearestNeighbors(n_neighbors=4).fit(points).kneighbors(points[:100])
    return [numpy.asarray(distances)[:, 1:], numpy.asarray(indices)]


for name, compute, tolerance in [
    ("linear regression of 500 points in 5 dimensions", linear, 1e-4),
    ("ridge regression", ridge, 1e-4),
    ("logistic regression: hits", logistic, 0.01),
    ("principal components", components, 1e-4),
    ("k-means", means, 1e-4),
    ("DBSCAN", density, 0),
    ("four nearest neighbours of 100 points", neighbours, 1e-4),
]:
    steps.step(name, lambda compute=compute: compute(cuml), lambda compute=compute: compute(sklearn), tolerance)
steps.end()
