# SPDX-License-Identifier: Apache-2.0
"""XGBoost: boosted trees by histograms, trained and asked with device="cuda"."""

import steps

steps.begin()

import numpy
import xgboost

steps.framework("XGBoost", xgboost.__version__)

random = numpy.random.default_rng(1)
features = random.standard_normal((5000, 12), dtype=numpy.float32)
value = features[:, 0] * features[:, 1] + numpy.sin(features[:, 2]) + (features[:, 3] > 0)
classes = (numpy.digitize(value, [0, 1])).astype(numpy.int32)
# On devices XGBoost asks whether a child is too light only for the best split of 32 bins, on the CPU for each: with no limit both agree.
common = {"min_child_weight": 0, "max_depth": 4, "eta": 0.3, "max_bin": 64, "tree_method": "hist", "seed": 1}


def predictions(device, target, rounds=8, **parameters):
    data = xgboost.QuantileDMatrix(features, target, max_bin=64)
    model = xgboost.train({**common, **parameters, "device": device}, data, num_boost_round=rounds)
    return model.predict(xgboost.DMatrix(features))


def both(name, target, tolerance, **parameters):
    steps.step(name, lambda: predictions("cuda", target, **parameters), lambda: predictions("cpu", target, **parameters), tolerance)


both("regression, 8 trees of depth 4, 5000 rows of 12 features", value, 1e-3)
both("classification in 3 classes, 8 rounds", classes, 1e-3, objective="multi:softprob", num_class=3)

steps.end()
