# SPDX-License-Identifier: Apache-2.0
"""CatBoost: boosted trees, trained with task_type="GPU". Models of the two sides differ, since they find the borders of features in different ways:
how well they predict is compared."""

import steps

steps.begin()

import catboost
import numpy

steps.framework("CatBoost", catboost.__version__)

random = numpy.random.default_rng(1)
features = random.random((2000, 10), dtype=numpy.float32)
value = 3 * features[:, 0] + numpy.sin(6 * features[:, 1]) + features[:, 2] * features[:, 3]
classes = numpy.digitize(value, [1.5, 2.5])
common = {"iterations": 20, "depth": 4, "learning_rate": 0.3, "random_seed": 1, "verbose": 0, "devices": "0", "allow_writing_files": False}


def error(task_type):
    model = catboost.CatBoostRegressor(task_type=task_type, **common).fit(features, value)
    return 1 + numpy.abs(model.predict(features) - value).mean()


def hits(task_type):
    model = catboost.CatBoostClassifier(task_type=task_type, **common).fit(features, classes)
    return (model.predict(features).ravel() == classes).mean()


def categories(task_type):
    """Numbers of categories, of which the device computes statistics."""
    table = numpy.column_stack([(features[:, 0] * 7).astype(int), (features[:, 1] * 5).astype(int)])
    model = catboost.CatBoostRegressor(task_type=task_type, cat_features=[0, 1], **common).fit(table, value)
    return 1 + numpy.abs(model.predict(table) - value).mean()


def both(name, compute, tolerance):
    steps.step(name, lambda: compute("GPU"), lambda: compute("CPU"), tolerance)


both("regression, 20 trees of depth 4: mean error", error, 0.03)
both("classification in 3 classes: hits", hits, 0.03)
both("regression by categories: mean error", categories, 0.03)
steps.end()
