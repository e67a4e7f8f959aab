/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER: Cholesky and LU factors, and singular values; the factors' product is compared with the matrix. */
#include "library_test.h"

#include <cusolverDn.h>

enum { SIZE = 40 };

static cusolverDnHandle_t handle;
static double matrix[SIZE * SIZE];

static int create(void **state)
{
    (void)state;
    return cusolverDnCreate(&handle) == CUSOLVER_STATUS_SUCCESS ? 0 : -1;
}

static int destroy(void **state)
{
    (void)state;
    return cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS ? 0 : -1;
}

static void make_matrix(bool symmetric)
{
    uint64_t seed = 3;

    for (int j = 0; j < SIZE; j++)
        for (int i = 0; i < SIZE; i++) {
            matrix[j * SIZE + i] = next_small(&seed, 5) + (i == j ? 6 * SIZE : 0);
            if (symmetric && i > j)
                continue;
            if (symmetric)
                matrix[i * SIZE + j] = matrix[j * SIZE + i];
        }
    for (int j = 0; symmetric && j < SIZE; j++)
        for (int i = 0; i < j; i++)
            matrix[i * SIZE + j] = matrix[j * SIZE + i];
}

static void *scratch(int count)
{
    void *device;

    ok(cudaMalloc(&device, (size_t)count * 8 + 8));
    return device;
}

static void check_info(int *info)
{
    int found;

    take_back(&found, info, sizeof found);
    assert_int_equal(found, 0);
}

static void test_cholesky(void **state)
{
    double found[SIZE * SIZE], *a, *work;
    const int zero = 0;
    int count, *info = device_copy(&zero, sizeof zero);

    (void)state;
    make_matrix(true);
    a = device_copy(matrix, sizeof matrix);
    ok(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, SIZE, a, SIZE, &count));
    work = scratch(count);
    ok(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, SIZE, a, SIZE, work, count, info));
    take_back(found, a, sizeof found);
    check_info(info);
    for (int j = 0; j < SIZE; j++)
        for (int i = j; i < SIZE; i++) {
            double sum = 0;

            for (int k = 0; k <= j; k++)
                sum += found[k * SIZE + i] * found[k * SIZE + j];
            assert_near(sum, matrix[j * SIZE + i], 1e-10);
        }
    ok(cudaFree(work));
}

static void test_lu(void **state)
{
    double found[SIZE * SIZE], *a, *work;
    const int zero = 0;
    int count, pivots[SIZE], order[SIZE], *info = device_copy(&zero, sizeof zero), *device_pivots = device_copy(pivots, sizeof pivots);

    (void)state;
    make_matrix(false);
    a = device_copy(matrix, sizeof matrix);
    ok(cusolverDnDgetrf_bufferSize(handle, SIZE, SIZE, a, SIZE, &count));
    work = scratch(count);
    ok(cusolverDnDgetrf(handle, SIZE, SIZE, a, SIZE, work, device_pivots, info));
    take_back(found, a, sizeof found);
    take_back(pivots, device_pivots, sizeof pivots);
    check_info(info);
    for (int i = 0; i < SIZE; i++)
        order[i] = i;
    for (int i = 0; i < SIZE; i++) {
        const int other = pivots[i] - 1, kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
    for (int j = 0; j < SIZE; j++)
        for (int i = 0; i < SIZE; i++) {
            double sum = i <= j ? found[j * SIZE + i] : 0;

            for (int k = 0; k < i && k <= j; k++)
                sum += found[k * SIZE + i] * found[j * SIZE + k];
            assert_near(sum, matrix[j * SIZE + order[i]], 1e-10);
        }
    ok(cudaFree(work));
}

static void test_singular_values(void **state)
{
    double values[SIZE], *a, *s, *work, squares = 0, sum = 0;
    const int zero = 0;
    int count, *info = device_copy(&zero, sizeof zero);

    (void)state;
    make_matrix(false);
    a = device_copy(matrix, sizeof matrix);
    s = device_copy(values, sizeof values);
    ok(cusolverDnDgesvd_bufferSize(handle, SIZE, SIZE, &count));
    work = scratch(count);
    ok(cusolverDnDgesvd(handle, 'N', 'N', SIZE, SIZE, a, SIZE, s, NULL, SIZE, NULL, SIZE, work, count, NULL, info));
    take_back(values, s, sizeof values);
    check_info(info);
    for (int i = 0; i < SIZE; i++) {
        squares += values[i] * values[i];
        assert_true(values[i] > 0 && (i == 0 || values[i] <= values[i - 1]));
    }
    for (int i = 0; i < SIZE * SIZE; i++)
        sum += matrix[i] * matrix[i];
    assert_near(squares, sum, 1e-10);
    ok(cudaFree(a));
    ok(cudaFree(work));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cholesky),
        cmocka_unit_test(test_lu),
        cmocka_unit_test(test_singular_values),
    };

    return cmocka_run_group_tests(tests, create, destroy);
}
