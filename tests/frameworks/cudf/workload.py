# SPDX-License-Identifier: Apache-2.0
"""cuDF of RAPIDS: tables on the device, compared with pandas. One kernel often contains an operation for all pairs of types."""

import steps

steps.begin()

import cudf
import numpy
import pandas

steps.framework("cuDF", cudf.__version__)

random = numpy.random.default_rng(1)
ROWS = 20_000
pandas_table = pandas.DataFrame(
    {
        "value": random.random(ROWS),
        "number": random.integers(0, 1000, ROWS, dtype=numpy.int32),
        "text": numpy.array(["ab", "cde", "f", "Ghij"])[random.integers(0, 4, ROWS)],
    }
)
cudf_table = cudf.DataFrame(pandas_table)


def numbers(result):
    """Of a table or a column, on either side; texts count by their length and their first letter."""
    result = result.to_pandas() if hasattr(result, "to_pandas") else result
    if isinstance(result, pandas.DataFrame):
        return [numbers(result[name]) for name in result]
    if isinstance(result, pandas.Series) and not pandas.api.types.is_numeric_dtype(result):
        return [result.str.len().to_numpy(), numpy.array([ord(text[0]) for text in result])]
    return result.to_numpy() if hasattr(result, "to_numpy") else result


def both(name, compute, tolerance):
    steps.step(name, lambda: numbers(compute(cudf_table)), lambda: numbers(compute(pandas_table)), tolerance)


both("sum and mean of a column", lambda table: [float(table.value.sum()), float(table.number.mean())], 1e-12)
both("running sums", lambda table: table.number.cumsum(), 0)
both("the rows with a number above 500", lambda table: table[table.number > 500], 0)
both("means of 5 neighbours", lambda table: table.value.rolling(5).mean(), 1e-12)
both("a sorted column", lambda table: table.value.sort_values(), 0)
both("texts in capitals", lambda table: table.text.str.upper(), 0)
steps.end()
