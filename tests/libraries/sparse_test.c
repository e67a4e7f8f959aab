/* SPDX-License-Identifier: Apache-2.0 */
/* cuSPARSE: a sparse matrix in CSR times a vector and times a matrix. The numbers are small integers, so the sums are exact. */
#include "library_test.h"

#include <cusparse.h>

enum { ROWS = 200, COLUMNS = 150, MAX_ENTRIES = ROWS * 12, WIDTH = 7 };

static int offsets[ROWS + 1], columns[MAX_ENTRIES];
static float values[MAX_ENTRIES], dense[COLUMNS * WIDTH];
static cusparseHandle_t handle;

/* Row i has i % 12 entries. */
static int make_matrix(void **state)
{
    uint64_t seed = 1;
    int n = 0;

    (void)state;
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = n;
        for (int k = 0; k < i % 12; k++, n++) {
            columns[n] = (i * 7 + k * 11) % COLUMNS;
            values[n] = (float)next_small(&seed, 9);
        }
    }
    offsets[ROWS] = n;
    for (int i = 0; i < COLUMNS * WIDTH; i++)
        dense[i] = (float)next_small(&seed, 9);
    return cusparseCreate(&handle) == CUSPARSE_STATUS_SUCCESS ? 0 : -1;
}

static int destroy(void **state)
{
    (void)state;
    return cusparseDestroy(handle) == CUSPARSE_STATUS_SUCCESS ? 0 : -1;
}

static float want(int row, int column)
{
    float sum = 0;

    for (int i = offsets[row]; i < offsets[row + 1]; i++)
        sum += values[i] * dense[column * COLUMNS + columns[i]];
    return sum;
}

struct on_device {
    void *offsets, *columns, *values, *dense, *result;
    cusparseSpMatDescr_t matrix;
};

static struct on_device copy_to_device(const float *result)
{
    const int n = offsets[ROWS];
    struct on_device d;

    d.offsets = device_copy(offsets, sizeof offsets);
    d.columns = device_copy(columns, sizeof columns);
    d.values = device_copy(values, sizeof values);
    d.dense = device_copy(dense, sizeof dense);
    d.result = device_copy(result, ROWS * WIDTH * sizeof *result);
    ok(cusparseCreateCsr(&d.matrix, ROWS, COLUMNS, n, d.offsets, d.columns, d.values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    return d;
}

static void finish(struct on_device *d, float *result)
{
    take_back(result, d->result, ROWS * WIDTH * sizeof *result);
    ok(cusparseDestroySpMat(d->matrix));
    ok(cudaFree(d->offsets));
    ok(cudaFree(d->columns));
    ok(cudaFree(d->values));
    ok(cudaFree(d->dense));
}

static void test_vector(void **state)
{
    static float result[ROWS * WIDTH];
    struct on_device d = copy_to_device(result);
    const float one = 1, zero = 0;
    cusparseDnVecDescr_t x, y;
    size_t bytes;
    void *buffer;

    (void)state;
    ok(cusparseCreateDnVec(&x, COLUMNS, d.dense, CUDA_R_32F));
    ok(cusparseCreateDnVec(&y, ROWS, d.result, CUDA_R_32F));
    ok(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.matrix, x, &zero, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
                               &bytes));
    ok(cudaMalloc(&buffer, bytes + 1));
    ok(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.matrix, x, &zero, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
    finish(&d, result);
    for (int i = 0; i < ROWS; i++)
        assert_near(result[i], want(i, 0), 0);
    ok(cudaFree(buffer));
    ok(cusparseDestroyDnVec(x));
    ok(cusparseDestroyDnVec(y));
}

static void test_matrix(void **state)
{
    static float result[ROWS * WIDTH];
    struct on_device d = copy_to_device(result);
    const float one = 1, zero = 0;
    cusparseDnMatDescr_t x, y;
    size_t bytes;
    void *buffer;

    (void)state;
    ok(cusparseCreateDnMat(&x, COLUMNS, WIDTH, COLUMNS, d.dense, CUDA_R_32F, CUSPARSE_ORDER_COL));
    ok(cusparseCreateDnMat(&y, ROWS, WIDTH, ROWS, d.result, CUDA_R_32F, CUSPARSE_ORDER_COL));
    ok(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.matrix, x, &zero, y,
                               CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
    ok(cudaMalloc(&buffer, bytes + 1));
    ok(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.matrix, x, &zero, y, CUDA_R_32F,
                    CUSPARSE_SPMM_ALG_DEFAULT, buffer));
    finish(&d, result);
    for (int i = 0; i < ROWS * WIDTH; i++)
        assert_near(result[i], want(i % ROWS, i / ROWS), 0);
    ok(cudaFree(buffer));
    ok(cusparseDestroyDnMat(x));
    ok(cusparseDestroyDnMat(y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_matrix),
    };

    return cmocka_run_group_tests(tests, make_matrix, destroy);
}
